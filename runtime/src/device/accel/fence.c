// SPDX-License-Identifier: MIT
/*
 * Fences of validated submits. The driver takes syncobjs, everybody else takes sync_files, and the
 * conversion between them is here.
 *
 * A struct accel_syncs lives for one submit. A sync_file that is returned belongs to the caller,
 * who closes it. No lock is needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"

static int create_syncobj(struct accel *a, uint32_t flags, uint32_t *handle)
{
	struct drm_syncobj_create create = {.flags = flags};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_SYNCOBJ_CREATE, &create);

	if (ret)
		return accel_failed(a, ret, "making a fence");
	*handle = create.handle;
	return 0;
}

static void destroy_syncobj(struct accel *a, uint32_t handle)
{
	struct drm_syncobj_destroy end = {.handle = handle};

	accel_system->ioctl(a->fd, DRM_IOCTL_SYNCOBJ_DESTROY, &end);
}

static int import_sync_file(struct accel *a, uint32_t handle, int file)
{
	struct drm_syncobj_handle arg = {
		.handle = handle,
		.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE,
		.fd = file,
	};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &arg);

	if (ret == -EINVAL)
		return fail(ret, "%s: descriptor %d is not a sync_file", a->node, file);
	return ret ? accel_failed(a, ret, "taking a fence") : 0;
}

static int add_sync(struct accel *a, struct accel_syncs *syncs)
{
	int ret = create_syncobj(a, 0, &syncs->list[syncs->count].handle);

	syncs->count += !ret;
	return ret;
}

int accel_syncs_make(struct accel *a, const struct device_fences *fences, struct accel_syncs *out)
{
	struct accel_syncs syncs = {.list = calloc(fences->in_count + 1, sizeof(*syncs.list))};
	int ret = 0;

	if (!syncs.list)
		return fail(-ENOMEM, "no memory for fences");
	for (size_t i = 0; !ret && i < fences->in_count; i++) {
		ret = add_sync(a, &syncs);
		ret = ret ? ret : import_sync_file(a, syncs.list[i].handle, fences->in[i]);
	}
	if (!ret && fences->wants_out)
		ret = add_sync(a, &syncs);
	if (ret)
		accel_syncs_free(a, &syncs);
	else
		*out = syncs;
	return ret;
}

void accel_syncs_free(struct accel *a, struct accel_syncs *syncs)
{
	for (uint32_t i = 0; i < syncs->count; i++)
		destroy_syncobj(a, syncs->list[i].handle);
	free(syncs->list);
}

int accel_sync_file(struct accel *a, const struct embeng_accel_sync *sync)
{
	struct drm_syncobj_handle arg = {
		.handle = sync->handle,
		.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE,
		.fd = -1,
	};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &arg);

	return ret ? accel_failed(a, ret, "giving a fence out") : arg.fd;
}

int accel_fence_signalled(struct device *d)
{
	struct accel *a = accel_of(d);
	struct embeng_accel_sync sync = {0};
	int ret = create_syncobj(a, DRM_SYNCOBJ_CREATE_SIGNALED, &sync.handle);

	if (ret)
		return ret;
	ret = accel_sync_file(a, &sync);
	destroy_syncobj(a, sync.handle);
	return ret;
}
