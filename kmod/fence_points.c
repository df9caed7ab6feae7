// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decides whether an out-fence may depend on a FENCE command. Its points name other queues and
 * are in memory of the program, so this file reads them and finds out what they wait for.
 *
 * The points are judged as they are when the command is submitted. A program that changes them
 * afterwards gets another wait than was judged; fence_watch.c ends the fence then. Only pages that
 * the driver made are read, since pinned and imported memory may not be looked at without its
 * owner.
 *
 * Nothing is kept. References to the buffer and to the other queue are held while they are looked
 * at; the jobs of the other queue are read under its vector->lock, so the caller holds no such
 * lock.
 */
#include <linux/cleanup.h>
#include <linux/overflow.h>

#include "context.h"

#define BYTES_MAX (EMBENG_FENCE_POINTS_MAX * sizeof(struct embeng_fence_point))

static int read_fence_points(struct embeng_context *ctx, const struct embeng_mem *mem,
			     struct embeng_fence_point *points)
{
	struct embeng_bo *bo;
	u64 offset;
	int ret;

	bo = embeng_region_bo(ctx, mem, &offset);
	if (!bo)
		return -ENOENT;
	ret = embeng_bo_read(bo, offset, points, mem->length);
	drm_gem_object_put(&bo->base);
	return ret;
}

static int judge_fence_point(struct embeng_queue *q, const struct embeng_fence_point *point,
			     struct embeng_need *need)
{
	struct embeng_queue *other = embeng_queue_get(q->context, point->queue);
	int ret = 0;

	/* The engine refuses a point that names no queue, or the queue itself. */
	if (!other)
		return 0;
	if (other == q)
		ret = 0;
	else if (other->mapped)
		ret = -EOPNOTSUPP;
	else if ((s32)(READ_ONCE(other->sq_tail) - point->index) <= 0)
		ret = -EAGAIN;
	else
		embeng_submit_need(other, point->index, need);
	embeng_queue_put(other);
	return ret;
}

/**
 * embeng_points_judge() - check whether an out-fence may depend on a FENCE command
 * @q: queue of the command
 * @cmd: FENCE command
 * @need: the steps that its points wait for are added here
 *
 * Return: 0; -EOPNOTSUPP if a point waits for a mapped queue or cannot be read; -EAGAIN if a point
 * waits for a command that was not submitted yet.
 */
int embeng_points_judge(struct embeng_queue *q, const struct embeng_cmd *cmd,
			struct embeng_need *need)
{
	struct embeng_fence_point points[EMBENG_FENCE_POINTS_MAX];
	u64 i, count = cmd->desc.length / sizeof(points[0]);
	int ret;

	/* The engine refuses such a FENCE, as it does one whose region is gone. */
	if (!count || cmd->desc.length > BYTES_MAX || cmd->desc.length % sizeof(points[0]))
		return 0;
	ret = read_fence_points(q->context, &cmd->desc, points);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	for (i = 0; !ret && i < count; i++)
		ret = judge_fence_point(q, &points[i], need);
	return ret;
}
