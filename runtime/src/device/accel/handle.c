// SPDX-License-Identifier: MIT
/*
 * A handle of a device behind the driver: its operations, and how it is made and ended. search.c
 * and open.c fill it. It is freed by the close() of its operations; what of it may be asked from
 * several threads is atomic or has a lock, as accel.h says.
 */
#include <stdlib.h>

#include "accel.h"
#include "base/error.h"

void accel_close(struct device *d)
{
	struct accel *a = accel_of(d);

	accel_event_close(a);
	if (a->fd >= 0)
		accel_system->close(a->fd);
	free(a->handles.list);
	pthread_mutex_destroy(&a->handles.lock);
	free(a);
}

static bool accel_run(struct device *d, bool all)
{
	(void)d;
	(void)all;
	return false;
}

/* Doorbells ring by being written. */
static void accel_kick(struct device *d)
{
	(void)d;
}

static void accel_describe(struct device *d)
{
	struct embeng_device_info *info = &d->info;

	if (!*info->description)
		accel_system->describe(info->address, info->description, sizeof(info->description));
}

static int accel_share(struct device *d)
{
	struct accel *a = accel_of(d);
	int fd = accel_system->dup(a->fd);

	if (fd < 0)
		return accel_failed(a, fd, "sharing the context");
	__atomic_store_n(&a->shared, true, __ATOMIC_RELAXED);
	return fd;
}

static const struct device_ops accel_ops = {
	.close = accel_close,
	.region_alloc = accel_region_alloc,
	.region_free = accel_region_free,
	.region_export = accel_region_export,
	.region_import = accel_region_import,
	.queue_create = accel_queue_create,
	.queue_destroy = accel_queue_destroy,
	.queue_submit = accel_queue_submit,
	.queue_load = accel_queue_load,
	.fence_signalled = accel_fence_signalled,
	.run = accel_run,
	.kick = accel_kick,
	.give = accel_kick,
	.lost = accel_lost,
	.settle = accel_settle,
	.event_read = accel_event_read,
	.event_wait = accel_event_wait,
	.event_signal = accel_event_signal,
	.fd = accel_fd,
	.fd_clear = accel_fd_clear,
	.describe = accel_describe,
	.share = accel_share,
	.read_register = accel_read_register,
};

struct accel *accel_new(void)
{
	struct accel *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->device.ops = &accel_ops;
	a->fd = a->ready = a->poll = -1;
	pthread_mutex_init(&a->handles.lock, NULL);
	return a;
}
