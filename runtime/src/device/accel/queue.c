// SPDX-License-Identifier: MIT
/*
 * Creates queues behind the driver, submits commands to them, and ends them. The rings of a mapped
 * queue are written by the process itself. Those of a validated queue are only read here, and
 * commands go through an ioctl.
 *
 * The mappings of a queue live until accel_queue_destroy(). The caller of a ring has the lock that
 * guards it, which is the session's.
 */
#include <errno.h>

#include "accel.h"
#include "base/error.h"

static bool carries_steps(enum embeng_queue_kind kind)
{
	return kind == EMBENG_QUEUE_INPUT || kind == EMBENG_QUEUE_GRADIENT;
}

static int make_queue(struct accel *a, const struct queue_config *config,
		      struct embeng_accel_queue_create *made)
{
	*made = (struct embeng_accel_queue_create){
		.kind = config->kind,
		.flags = a->mapped ? EMBENG_ACCEL_QUEUE_MAPPED : 0,
		.replica = config->replica,
		.priority = 1,
		.sq_entries = config->sq_entries,
		.cq_entries = config->cq_entries,
	};
	return accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_QUEUE_CREATE, made);
}

/* All queues that carry a context's steps go one way, which the one that made it chose. */
static int make_either_queue(struct accel *a, const struct queue_config *config,
			     struct embeng_accel_queue_create *made)
{
	int ret = make_queue(a, config, made);

	if (!a->trying || !carries_steps(config->kind))
		return ret;
	a->trying = false;
	if (ret != -EINVAL)
		return ret;
	a->mapped = false;
	return make_queue(a, config, made);
}

static void drop_queue(struct accel *a, uint32_t number)
{
	struct embeng_accel_queue_destroy end = {.queue = number};

	accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_QUEUE_DESTROY, &end);
}

static int map_queue(struct accel *a, const struct embeng_accel_queue_create *made,
		     struct device_queue *queue)
{
	int ret;

	queue->ring = accel_system->map(a->fd, made->ring, made->layout.size, a->mapped);
	if (!queue->ring)
		return accel_failed(a, -errno, "mapping a queue");
	if (!a->mapped)
		return 0;
	queue->doorbell = accel_system->map(a->fd, made->doorbell, sizeof(*queue->doorbell), true);
	if (queue->doorbell)
		return 0;
	ret = accel_failed(a, -errno, "mapping a doorbell");
	accel_system->unmap(queue->ring, made->layout.size);
	return ret;
}

int accel_queue_create(struct device *d, const struct queue_config *config,
		       struct device_queue *out)
{
	struct accel *a = accel_of(d);
	struct embeng_accel_queue_create made;
	struct device_queue queue;
	int ret = make_either_queue(a, config, &made);

	if (ret)
		return accel_failed(a, ret, "making a queue");
	queue = (struct device_queue){
		.layout = made.layout, .number = made.queue, .validator = a->mapped ? NULL : d};
	ret = map_queue(a, &made, &queue);
	if (ret) {
		drop_queue(a, made.queue);
		return ret;
	}
	*out = queue;
	return 0;
}

void accel_queue_destroy(struct device *d, const struct device_queue *queue)
{
	struct accel *a = accel_of(d);

	if (queue->doorbell)
		accel_system->unmap(queue->doorbell, sizeof(*queue->doorbell));
	accel_system->unmap(queue->ring, queue->layout.size);
	drop_queue(a, queue->number);
}

static int submit_command(struct accel *a, struct embeng_accel_submit *submit)
{
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_SUBMIT, submit);

	if (ret == -ENOSPC)
		return -EAGAIN;
	if (submit->out_count && ret == -EAGAIN)
		return -EBUSY;
	if (submit->out_count && ret == -EOPNOTSUPP)
		return fail(-ENOTSUP,
			    "%s: the driver promises no fence for what waits for other "
			    "handles on mapped queues, or for a model that it did not load",
			    a->node);
	return ret ? accel_failed(a, ret, "submitting a command") : 0;
}

static int submit_fenced(struct accel *a, struct embeng_accel_submit *arg,
			 struct device_fences *fences)
{
	struct accel_syncs syncs;
	int ret = accel_syncs_make(a, fences, &syncs);

	if (ret)
		return ret;
	arg->in_count = (uint32_t)fences->in_count;
	arg->in_syncs = arg->in_count ? (uint64_t)(uintptr_t)syncs.list : 0;
	arg->out_count = fences->wants_out;
	if (fences->wants_out)
		arg->out_syncs = (uint64_t)(uintptr_t)&syncs.list[fences->in_count];
	ret = submit_command(a, arg);
	/* Without a descriptor the command is there all the same. */
	if (!ret && fences->wants_out)
		fences->out = accel_sync_file(a, &syncs.list[fences->in_count]);
	accel_syncs_free(a, &syncs);
	return ret;
}

int accel_queue_submit(struct device *d, uint32_t queue, const struct embeng_cmd *cmd,
		       uint32_t cq_head, struct device_fences *fences)
{
	struct accel *a = accel_of(d);
	struct embeng_accel_submit arg = {
		.queue = queue,
		.count = 1,
		.stride = sizeof(*cmd),
		.commands = (uint64_t)(uintptr_t)cmd,
		.cq_head = cq_head,
	};

	return fences ? submit_fenced(a, &arg, fences) : submit_command(a, &arg);
}

int accel_queue_load(struct device *d, uint32_t queue, const struct model_blob *blob,
		     uint64_t cookie)
{
	struct accel *a = accel_of(d);
	struct embeng_accel_model_load load = {
		.queue = queue,
		.flags = blob->flags,
		.blob = (uint64_t)(uintptr_t)blob->bytes,
		.length = blob->length,
		.cookie = cookie,
	};
	int ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_MODEL_LOAD, &load);

	return ret ? accel_failed(a, ret, "loading the model") : 0;
}
