// SPDX-License-Identifier: MIT
/*
 * Memory that the device reaches: GEM buffer objects, mapped into the process and bound into the
 * context's table of regions.
 *
 * A region belongs to the caller until accel_region_free(). a->handles.lock guards the list of GEM
 * handles, which tells our own handles from those of an import; it is held across an import, since
 * an import of the same memory by another thread would get the same handle.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"

static bool is_lost(int error)
{
	return error == -ENODEV || error == -ESHUTDOWN;
}

static void close_handle(struct accel *a, uint32_t handle)
{
	struct drm_gem_close close = {.handle = handle};

	accel_system->ioctl(a->fd, DRM_IOCTL_GEM_CLOSE, &close);
}

static int note_handle(struct accel *a, uint32_t handle)
{
	struct accel_handles *h = &a->handles;
	int ret = 0;

	pthread_mutex_lock(&h->lock);
	if (h->count == h->capacity) {
		size_t wanted = h->capacity ? 2 * h->capacity : 32;
		uint32_t *larger = realloc(h->list, wanted * sizeof(*larger));

		if (larger) {
			h->list = larger;
			h->capacity = wanted;
		} else {
			ret = fail(-ENOMEM, "no memory to keep track of the device's memory");
		}
	}
	if (!ret)
		h->list[h->count++] = handle;
	pthread_mutex_unlock(&h->lock);
	return ret;
}

/* Where the list has it, or its count: not ours. Under its lock. */
static size_t find_handle(const struct accel_handles *h, uint32_t handle)
{
	size_t i = 0;

	while (i < h->count && h->list[i] != handle)
		i++;
	return i;
}

/* An import in between would take it for its own, and close it, too. */
static void forget_and_close(struct accel *a, uint32_t handle)
{
	struct accel_handles *h = &a->handles;
	size_t at;

	pthread_mutex_lock(&h->lock);
	at = find_handle(h, handle);
	if (at < h->count)
		h->list[at] = h->list[--h->count];
	close_handle(a, handle);
	pthread_mutex_unlock(&h->lock);
}

/* Maps and binds; undone on failure. */
static int reach_buffer(struct accel *a, uint32_t handle, uint64_t offset, struct region *region)
{
	struct embeng_accel_bind bind = {
		.handle = handle,
		.rights = EMBENG_REGION_DEVICE_READ | EMBENG_REGION_DEVICE_WRITE,
		.length = region->length,
	};
	int ret;

	region->data = accel_system->map(a->fd, offset, region->length, true);
	if (!region->data)
		return accel_failed(a, -errno, "mapping a buffer");
	ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_BIND, &bind);
	if (ret) {
		accel_system->unmap(region->data, region->length);
		return accel_failed(a, ret, "binding a buffer");
	}
	region->key = (struct embeng_mem){
		.index = bind.index, .generation = bind.generation, .length = region->length};
	return 0;
}

int accel_region_alloc(struct device *d, uint64_t bytes, struct region *out)
{
	struct accel *a = accel_of(d);
	struct embeng_accel_bo_create create = {.size = bytes};
	struct region made = {.length = bytes};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_BO_CREATE, &create);

	if (ret)
		return accel_failed(a, ret, "making a buffer");
	made.handle = create.handle;
	ret = note_handle(a, create.handle);
	ret = ret ? ret : reach_buffer(a, create.handle, create.offset, &made);
	if (ret) {
		forget_and_close(a, create.handle);
		return ret;
	}
	*out = made;
	return 0;
}

int accel_region_free(struct device *d, struct region *region)
{
	struct accel *a = accel_of(d);
	struct embeng_accel_unbind unbind = {.index = region->key.index,
					     .generation = region->key.generation};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_UNBIND, &unbind);

	/* With the context its keys are gone, too. */
	if (ret && !is_lost(ret))
		return accel_failed(a, ret, "taking a buffer back");
	accel_system->unmap(region->data, region->length);
	if (region->handle)
		forget_and_close(a, region->handle);
	return 0;
}

int accel_region_export(struct device *d, const struct region *region)
{
	struct accel *a = accel_of(d);
	struct drm_prime_handle prime = {.handle = region->handle, .flags = DRM_CLOEXEC | DRM_RDWR};
	int ret;

	if (!region->handle)
		return fail(-EINVAL, "this memory was imported; pass on the descriptor that it "
				     "came by");
	ret = accel_system->ioctl(a->fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime);
	return ret ? accel_failed(a, ret, "exporting a buffer") : prime.fd;
}

static int reach_imported(struct accel *a, uint32_t handle, struct region *out)
{
	struct embeng_accel_bo_info info = {.handle = handle};
	struct region made = {0};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_BO_INFO, &info);

	if (ret)
		return accel_failed(a, ret, "importing a buffer");
	made.length = info.size;
	ret = reach_buffer(a, handle, info.offset, &made);
	if (!ret)
		*out = made;
	return ret;
}

static int import_failed(struct accel *a, int error, int dmabuf)
{
	/* The exporter's error may be one that means the end of our own device. */
	if (is_lost(error)) {
		error = accel_ended(a);
		error = error ? error : -EINVAL;
	}
	if (error == -EBADF || error == -EINVAL)
		return fail(-EINVAL, "%s: descriptor %d is no dma-buf that this device can reach",
			    a->node, dmabuf);
	if (error == -EOPNOTSUPP)
		return fail(error,
			    "%s: the exporter of this memory does not share it with other "
			    "devices, or the kernel would put copies between it and the device "
			    "(swiotlb); use memory of embeng_buffer_alloc()",
			    a->node);
	return accel_failed(a, error, "importing a buffer");
}

/* A thread that imports the same memory meanwhile gets the same handle, which we may close. */
static int import_alone(struct accel *a, int dmabuf, struct region *out)
{
	struct drm_prime_handle prime = {.fd = dmabuf};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime);

	if (ret)
		return import_failed(a, ret, dmabuf);
	ret = reach_imported(a, prime.handle, out);
	/*
	 * Mapping and key keep the memory. Memory that this file exported comes back under its
	 * own handle, which is not ours to close. If others use the file too, we cannot know, and
	 * the handle stays until the context ends.
	 */
	if (!__atomic_load_n(&a->shared, __ATOMIC_RELAXED) &&
	    find_handle(&a->handles, prime.handle) == a->handles.count)
		close_handle(a, prime.handle);
	return ret;
}

int accel_region_import(struct device *d, int dmabuf, struct region *out)
{
	struct accel *a = accel_of(d);
	int ret;

	pthread_mutex_lock(&a->handles.lock);
	ret = import_alone(a, dmabuf, out);
	pthread_mutex_unlock(&a->handles.lock);
	return ret;
}
