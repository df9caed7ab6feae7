// SPDX-License-Identifier: GPL-2.0-only
/*
 * Validated submission: commands are copied, checked, and given to the device by the driver,
 * which owns the doorbell. The ring is never writable to the program.
 */
#include <linux/cleanup.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "context.h"
#include "ring.h"
#include "trace.h"

#define STRIDE_MAX 4096u

struct batch {
	struct embeng_cmd *commands;
	u32 count;
	u32 owed; /* completions that the device may post for them */
};

static u32 completions(const struct embeng_cmd *cmd)
{
	return cmd->opcode == EMBENG_OP_LOOKUP ? 2 : 1;
}

/* The key may end any time; the device looks again, and this only finds mistakes early. */
static int check_key(struct embeng_context *ctx, const struct embeng_mem *mem)
{
	if (!mem->index && !mem->generation && !mem->offset && !mem->length)
		return 0;
	return embeng_region_exists(ctx, mem->index, mem->generation) ? 0 : -ENOENT;
}

static int check_command(const struct embeng_queue *q, const struct embeng_cmd *cmd)
{
	return embeng_command_check(q->kind, cmd) ?: check_key(q->context, &cmd->desc);
}

static int check_batch(const struct embeng_queue *q, struct batch *batch)
{
	u32 i;
	int ret;

	for (i = 0; i < batch->count; i++) {
		ret = check_command(q, &batch->commands[i]);
		if (ret)
			return ret;
		batch->owed += completions(&batch->commands[i]);
	}
	return 0;
}

static int copy_commands(const struct embeng_accel_submit *arg, struct embeng_cmd *out)
{
	const char __user *from = u64_to_user_ptr(arg->commands);
	u32 i;
	int ret;

	for (i = 0; i < arg->count; i++) {
		ret = copy_struct_from_user(&out[i], sizeof(*out), from + (size_t)i * arg->stride,
					    arg->stride);
		if (ret)
			return ret;
	}
	return 0;
}

/* What the device posted is off the account, once. Under q->lock. */
static void walk(struct embeng_queue *q)
{
	const struct embeng_cqe *ring = q->ring + q->layout.cq, *cqe;
	u32 tail = embeng_observe_cq_tail(&embeng_queue_header(q)->cq_tail);

	if (tail - q->walked > q->layout.cq_entries)
		return;
	for (; q->walked != tail; q->walked++) {
		cqe = &ring[q->walked & (q->layout.cq_entries - 1)];
		trace_embeng_complete(q->context->number, q->number, cqe->cookie, cqe->status,
				      cqe->flags);
		q->owed -= q->owed > 0;
		if (READ_ONCE(cqe->flags) & EMBENG_CQE_DONE)
			q->in_flight -= q->in_flight > 0;
	}
	/* A refused LOOKUP posts one completion less than it might have. */
	if (!q->in_flight)
		q->owed = 0;
}

/**
 * embeng_submit_consume() - the program has read completions
 * @q: validated queue, under its lock and reset_lock
 * @head: completions below it
 *
 * Return: 0, or -EINVAL when it is not between what was read before and what is there.
 */
int embeng_submit_consume(struct embeng_queue *q, u32 head)
{
	walk(q);
	if (!embeng_ring_between(head, q->cq_head, q->walked))
		return -EINVAL;
	if (head != q->cq_head)
		embeng_doorbell_write(q->doorbell, cq_head, head);
	q->cq_head = head;
	return 0;
}

static bool has_room(const struct embeng_queue *q, const struct batch *batch)
{
	u32 head = embeng_observe_sq_head(&embeng_queue_header(q)->sq_head);

	return embeng_ring_holds(head, q->sq_tail, batch->count, q->layout.sq_entries) &&
	       embeng_ring_holds(q->cq_head, q->walked, (u64)q->owed + batch->owed,
				 q->layout.cq_entries);
}

static void push(struct embeng_queue *q, const struct batch *batch)
{
	struct embeng_cmd *ring = q->ring + q->layout.sq;
	u32 i;

	for (i = 0; i < batch->count; i++)
		ring[q->sq_tail++ & (q->layout.sq_entries - 1)] = batch->commands[i];
	q->owed += batch->owed;
	q->in_flight += batch->count;
	/* writel() orders the commands before the doorbell. */
	embeng_doorbell_write(q->doorbell, sq_tail, q->sq_tail);
}

/* Under reset_lock: the doorbell is this queue's as long as the context is not lost. */
static int give(struct embeng_queue *q, const struct batch *batch, u32 head, u32 *index)
{
	int ret = embeng_context_usable(q->context);

	if (ret)
		return ret;
	guard(mutex)(&q->lock);
	if (q->destroyed)
		return -ENOENT;
	ret = embeng_submit_consume(q, head);
	if (ret)
		return ret;
	if (!has_room(q, batch))
		return -ENOSPC;
	*index = q->sq_tail;
	trace_embeng_submit(q->context->number, q->number, *index, batch->count);
	push(q, batch);
	return 0;
}

/**
 * embeng_submit_one() - give the device a command of the driver's making
 * @q: validated queue
 * @cmd: checked by its maker
 * @index: free-running index of it
 *
 * Return: 0 or a negative errno of the contract.
 */
int embeng_submit_one(struct embeng_queue *q, struct embeng_cmd *cmd, u32 *index)
{
	struct batch batch = { .commands = cmd, .count = 1, .owed = completions(cmd) };

	guard(rwsem_read)(&q->context->device->reset_lock);
	return give(q, &batch, READ_ONCE(q->cq_head), index);
}

static int submit(struct embeng_queue *q, struct embeng_accel_submit *arg)
{
	struct embeng_cmd *commands __free(kvfree) = NULL;
	struct batch batch = { .count = arg->count };
	int ret;

	if (q->mapped || arg->count > q->layout.sq_entries)
		return -EINVAL;
	commands = kvmalloc_array(arg->count, sizeof(*commands), GFP_KERNEL_ACCOUNT);
	if (!commands)
		return -ENOMEM;
	ret = copy_commands(arg, commands);
	if (ret)
		return ret;
	batch.commands = commands;
	ret = check_batch(q, &batch);
	if (ret)
		return ret;
	guard(rwsem_read)(&q->context->device->reset_lock);
	return give(q, &batch, arg->cq_head, &arg->index);
}

static int check(const struct embeng_accel_submit *arg)
{
	if (arg->flags || !arg->count || arg->index)
		return -EINVAL;
	if (arg->stride < sizeof(struct embeng_cmd) || arg->stride > STRIDE_MAX)
		return -EINVAL;
	if (arg->in_count || arg->out_count)
		return -EOPNOTSUPP;
	return arg->in_syncs || arg->out_syncs ? -EINVAL : 0;
}

/**
 * embeng_submit_ioctl() - DRM_IOCTL_EMBENG_SUBMIT
 * @drm: device
 * @data: &struct embeng_accel_submit
 * @file: whose queue
 *
 * Return: 0 or a negative errno of the contract.
 */
int embeng_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_submit *arg = data;
	struct embeng_queue *q;
	int ret = check(arg);

	if (ret)
		return ret;
	q = embeng_queue_get(to_embeng_context(file), arg->queue);
	if (!q)
		return -ENOENT;
	ret = submit(q, arg);
	embeng_queue_put(q);
	return ret;
}
