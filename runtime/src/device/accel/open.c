// SPDX-License-Identifier: MIT
/*
 * Opens a device behind the driver, or attaches to a context that another process shared: a file
 * with a context on it. handle.c has the operations of such devices.
 *
 * The struct accel belongs to the handle and lives until accel_close(). Opening and closing are
 * done by one thread.
 */
#include <stdio.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"

#define REGIONS_LEAST 1024u
#define REGIONS_PER_REPLICA 256u
#define QUEUES_PER_REPLICA 3u

static int check_replicas(struct accel *a, uint32_t replicas)
{
	uint64_t queues = 2 + QUEUES_PER_REPLICA * (uint64_t)replicas;

	if (replicas <= a->device.info.replicas && queues <= a->device.queues)
		return 0;
	return fail(-ENOTSUP,
		    "%s: the model wants %u replicas and with them %llu queues, the device has %u "
		    "and %u; behind \"mpi:\" a model may have more",
		    a->node, replicas, (unsigned long long)queues, a->device.info.replicas,
		    a->device.queues);
}

static int make_context(struct accel *a, uint32_t replicas, uint32_t most)
{
	uint64_t regions = (uint64_t)replicas * REGIONS_PER_REPLICA;
	struct embeng_accel_context_create create = {0};
	int ret;

	regions = regions < REGIONS_LEAST ? REGIONS_LEAST : regions;
	create.regions = regions < most ? (uint32_t)regions : most;
	ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_CONTEXT_CREATE, &create);
	return ret ? accel_failed(a, ret, "making a context") : 0;
}

static int open_function(struct accel *a, const struct name *name, uint32_t replicas)
{
	struct accel_facts facts;
	int ret = accel_reach(a, name, &facts);

	if (ret)
		return ret;
	a->device.queues = facts.caps.queues;
	ret = accel_choose_path(a, name->path, &facts);
	ret = ret ? ret : check_replicas(a, replicas);
	ret = ret ? ret : make_context(a, replicas, facts.caps.regions);
	return ret ? ret : accel_event_open(a);
}

int accel_open(const struct name *name, uint32_t replicas, struct device **out)
{
	struct accel *a = accel_new();
	int ret;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	ret = open_function(a, name, replicas);
	if (ret) {
		accel_close(&a->device);
		return ret;
	}
	*out = &a->device;
	return 0;
}

static int check_alive(struct accel *a)
{
	struct embeng_accel_context_state state;
	int ret = accel_query(a->fd, EMBENG_ACCEL_QUERY_CONTEXT, &state, sizeof(state));

	if (!ret && state.status == EMBENG_ACCEL_CONTEXT_LOST)
		ret = -ESHUTDOWN;
	if (ret)
		return accel_failed(a, ret, "attaching");
	if (state.status != EMBENG_ACCEL_CONTEXT_ALIVE)
		return fail(-EINVAL, "embeng_attach: the descriptor has no context; it must be one "
				     "that embeng_export() gave");
	return 0;
}

static int attach_handle(struct accel *a, int fd)
{
	struct accel_facts facts;
	int ret;

	strcpy(a->node, "embeng_attach");
	a->device.info.size = sizeof(a->device.info);
	a->fd = accel_system->dup(fd);
	if (a->fd < 0)
		return fail(a->fd, "embeng_attach: descriptor %d: %s", fd, strerror(-a->fd));
	ret = accel_inquire(a->fd, a->node, &a->device.info, &facts);
	ret = ret ? ret : check_alive(a);
	if (ret)
		return ret;
	snprintf(a->device.info.name, sizeof(a->device.info.name), "%s", a->device.info.address);
	snprintf(a->node, sizeof(a->node), "%s", a->device.info.address);
	a->device.queues = facts.caps.queues;
	a->mapped = (facts.device.flags & EMBENG_ACCEL_CAN_MAP_QUEUES) != 0;
	a->trying = a->mapped;
	a->shared = true;
	return accel_event_open(a);
}

int accel_attach(int fd, struct device **out)
{
	struct accel *a = accel_new();
	int ret;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	ret = attach_handle(a, fd);
	if (ret) {
		accel_close(&a->device);
		return ret;
	}
	*out = &a->device;
	return 0;
}
