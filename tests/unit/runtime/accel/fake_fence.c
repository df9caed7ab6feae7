// SPDX-License-Identifier: MIT
/* Fences of the fake driver: syncobjs without anything behind them. */
#include <fcntl.h>
#include <sys/eventfd.h>

#include "fake_file.h"

#define SYNCOBJS 256u

static bool used[SYNCOBJS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int create(struct drm_syncobj_create *c)
{
	uint32_t i = 0;

	while (i < SYNCOBJS && used[i])
		i++;
	ck_assert_uint_lt(i, SYNCOBJS);
	used[i] = true;
	c->handle = i + 1;
	return 0;
}

static void check(uint32_t handle)
{
	ck_assert(handle && handle <= SYNCOBJS && used[handle - 1]);
}

static int destroy(const struct drm_syncobj_destroy *d)
{
	check(d->handle);
	used[d->handle - 1] = false;
	return 0;
}

static int to_file(struct drm_syncobj_handle *h)
{
	check(h->handle);
	h->fd = eventfd(1, EFD_CLOEXEC);
	return h->fd < 0 ? -errno : 0;
}

static int from_file(const struct drm_syncobj_handle *h)
{
	check(h->handle);
	return fcntl(h->fd, F_GETFD) < 0 ? -EINVAL : 0;
}

static int dispatch(unsigned long request, void *arg)
{
	switch (request) {
	case DRM_IOCTL_SYNCOBJ_CREATE:
		return create(arg);
	case DRM_IOCTL_SYNCOBJ_DESTROY:
		return destroy(arg);
	case DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD:
		return to_file(arg);
	case DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE:
		return from_file(arg);
	}
	return -ENOTTY;
}

int fake_fences(unsigned long request, void *arg)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = dispatch(request, arg);
	pthread_mutex_unlock(&lock);
	return ret;
}
