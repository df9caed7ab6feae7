// SPDX-License-Identifier: MIT
/* Buffer objects of the fake driver: regions of the soft device, which binds what it makes. */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <sys/mman.h>

#include "fake_file.h"

#define BOS 4096u
#define FIRST_HANDLE 7u

struct bo {
	struct region region;
	struct fake_file *home;
	uint32_t handle; /* 0: closed */
	int binds, maps;
	int dmabuf; /* another driver's, that it was imported from, or 0 */
	bool used;
};

static struct bo bos[BOS], *exported[FAKE_DESCRIPTORS];
static bool foreign[FAKE_DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put_bo(struct bo *bo)
{
	if (bo->handle || bo->binds || bo->maps)
		return;
	ck_assert_int_eq(bo->home->soft->ops->region_free(bo->home->soft, &bo->region), 0);
	bo->used = false;
	fake.bos--;
}

static struct bo *bo_by_handle(struct fake_file *f, uint32_t handle)
{
	uint32_t i = handle - FIRST_HANDLE;

	return i < BOS && bos[i].used && bos[i].home == f && bos[i].handle ? &bos[i] : NULL;
}

static int bo_create(struct fake_file *f, struct embeng_accel_bo_create *c)
{
	uint32_t i = 0;

	ck_assert_uint_gt(c->size, 0);
	ck_assert_uint_eq(c->flags, 0);
	while (i < BOS && bos[i].used)
		i++;
	ck_assert_uint_lt(i, BOS);
	bos[i] = (struct bo){.home = f, .handle = FIRST_HANDLE + i, .used = true};
	ck_assert_int_eq(f->soft->ops->region_alloc(f->soft, c->size, &bos[i].region), 0);
	c->handle = bos[i].handle;
	c->offset = (uintptr_t)bos[i].region.data;
	fake.bos++;
	return 0;
}

static int bo_info(struct fake_file *f, struct embeng_accel_bo_info *info)
{
	struct bo *bo = bo_by_handle(f, info->handle);

	if (!bo)
		return -ENOENT;
	info->size = bo->region.length;
	info->offset = (uintptr_t)bo->region.data;
	return 0;
}

static int gem_close(struct fake_file *f, const struct drm_gem_close *c)
{
	struct bo *bo = bo_by_handle(f, c->handle);

	ck_assert_msg(bo != NULL, "handle %u is closed twice", c->handle);
	bo->handle = 0;
	put_bo(bo);
	return 0;
}

static int bind(struct fake_file *f, struct embeng_accel_bind *b)
{
	struct bo *bo = bo_by_handle(f, b->handle);

	ck_assert_ptr_nonnull(bo);
	ck_assert_uint_eq(b->rights, 3);
	ck_assert_uint_le(b->length, bo->region.length);
	b->index = bo->region.key.index;
	b->generation = bo->region.key.generation;
	bo->binds++;
	fake.bindings++;
	return 0;
}

static int unbind(struct fake_file *f, const struct embeng_accel_unbind *u)
{
	for (uint32_t i = 0; i < BOS; i++) {
		struct bo *bo = &bos[i];

		if (!bo->used || bo->home != f || !bo->binds || bo->region.key.index != u->index)
			continue;
		ck_assert_uint_eq(bo->region.key.generation, u->generation);
		bo->binds--;
		fake.bindings--;
		put_bo(bo);
		return 0;
	}
	ck_abort_msg("key %u is unbound twice", u->index);
	return -ENOENT;
}

static int new_dmabuf(struct bo *bo)
{
	int fd = memfd_create("dma-buf", MFD_CLOEXEC);

	ck_assert(fd >= 0 && fd < FAKE_DESCRIPTORS);
	exported[fd] = bo;
	foreign[fd] = !bo;
	return fd;
}

int fake_foreign_dmabuf(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = new_dmabuf(NULL);
	pthread_mutex_unlock(&lock);
	return fd;
}

static int prime_export(struct fake_file *f, struct drm_prime_handle *p)
{
	struct bo *bo = bo_by_handle(f, p->handle);

	ck_assert_ptr_nonnull(bo);
	ck_assert_uint_eq(p->flags, DRM_CLOEXEC | DRM_RDWR);
	p->fd = new_dmabuf(bo);
	return 0;
}

/* As long as its handle is open it comes back under that one. */
static int import_foreign(struct fake_file *f, struct drm_prime_handle *p)
{
	struct embeng_accel_bo_create create = {.size = 4096};

	for (uint32_t i = 0; i < BOS; i++) {
		p->handle = bos[i].handle;
		if (bos[i].dmabuf == p->fd && bo_by_handle(f, p->handle))
			return 0;
	}
	bo_create(f, &create);
	bo_by_handle(f, create.handle)->dmabuf = p->fd;
	p->handle = create.handle;
	return 0;
}

/* A file's own buffer keeps its handle. The fake knows no other files', and none that are gone. */
static int prime_import(struct fake_file *f, struct drm_prime_handle *p)
{
	struct bo *bo = p->fd >= 0 && p->fd < FAKE_DESCRIPTORS ? exported[p->fd] : NULL;

	if (!bo && p->fd >= 0 && p->fd < FAKE_DESCRIPTORS && foreign[p->fd])
		return import_foreign(f, p);
	if (!bo || bo->home != f || !bo->used)
		return -EINVAL;
	if (!bo->handle)
		bo->handle = FIRST_HANDLE + (uint32_t)(bo - bos);
	p->handle = bo->handle;
	return 0;
}

static int dispatch(struct fake_file *f, unsigned long request, void *arg)
{
	switch (request) {
	case DRM_IOCTL_EMBENG_BO_CREATE:
		return bo_create(f, arg);
	case DRM_IOCTL_EMBENG_BO_INFO:
		return bo_info(f, arg);
	case DRM_IOCTL_GEM_CLOSE:
		return gem_close(f, arg);
	case DRM_IOCTL_EMBENG_BIND:
		return bind(f, arg);
	case DRM_IOCTL_EMBENG_UNBIND:
		return unbind(f, arg);
	case DRM_IOCTL_PRIME_HANDLE_TO_FD:
		return prime_export(f, arg);
	case DRM_IOCTL_PRIME_FD_TO_HANDLE:
		return prime_import(f, arg);
	}
	return -ENOTTY;
}

int fake_memory(struct fake_file *f, unsigned long request, void *arg)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = dispatch(f, request, arg);
	pthread_mutex_unlock(&lock);
	return ret;
}

void fake_memory_end(struct fake_file *f)
{
	for (uint32_t i = 0; i < BOS; i++) {
		if (bos[i].used && bos[i].home == f && bos[i].handle) {
			bos[i].handle = 0;
			put_bo(&bos[i]);
		}
	}
}

static struct bo *bo_at(const void *data)
{
	for (uint32_t i = 0; i < BOS; i++)
		if (bos[i].used && bos[i].region.data == data)
			return &bos[i];
	return NULL;
}

void *fake_map(int fd, uint64_t offset, uint64_t length, bool writable)
{
	void *data = (void *)(uintptr_t)offset;
	struct bo *bo;

	(void)fd;
	(void)writable;
	if (fake.fails == (unsigned long)-1) {
		errno = -fake.error;
		return NULL;
	}
	ck_assert(data && length);
	pthread_mutex_lock(&lock);
	bo = bo_at(data);
	if (bo)
		bo->maps++;
	fake.mappings++;
	pthread_mutex_unlock(&lock);
	return data;
}

void fake_unmap(void *data, uint64_t length)
{
	struct bo *bo;

	ck_assert_uint_gt(length, 0);
	pthread_mutex_lock(&lock);
	bo = bo_at(data);
	if (bo) {
		bo->maps--;
		/* A lost context has no keys left to end. */
		if (fake.lost && bo->binds) {
			bo->binds--;
			fake.bindings--;
		}
		put_bo(bo);
	}
	fake.mappings--;
	pthread_mutex_unlock(&lock);
}
