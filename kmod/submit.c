// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SUBMIT ioctl: validated submission. Commands are copied once, the copies are checked, and
 * the driver writes them into the ring and rings the doorbell. The program maps the ring
 * read-only.
 *
 * Steps that sleep or can fail come first. All memory of the program is copied while nothing is
 * held. Then, inside `users` and with a reference to the queue, commands are checked, fences found
 * and memory allocated, and the batch is taken with reset_lock held for reading, and queue->lock,
 * by submit_take.c. A batch lives on the stack of the call; its job passes to the queue when the
 * commands are taken, else it is freed here. The queue may be destroyed by another thread until
 * queue->lock is taken.
 */
#include <linux/cleanup.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

#include "context.h"

#define STRIDE_MAX 4096u

/* Finds mistakes early. The key may end at any time, and the device looks again. */
static int check_command_key(struct embeng_context *ctx, const struct embeng_mem *mem)
{
	if (!mem->index && !mem->generation && !mem->offset && !mem->length)
		return 0;
	return embeng_region_exists(ctx, mem->index, mem->generation) ? 0 : -ENOENT;
}

static int check_command(const struct embeng_queue *q, const struct embeng_cmd *cmd)
{
	return embeng_command_check(q->kind, cmd) ?: check_command_key(q->context, &cmd->desc);
}

static int check_batch(const struct embeng_queue *q, struct embeng_batch *batch)
{
	u32 i;
	int ret;

	for (i = 0; i < batch->count; i++) {
		ret = check_command(q, &batch->commands[i]);
		if (ret)
			return ret;
		batch->owed += embeng_completions(batch->commands[i].opcode);
	}
	return 0;
}

/* Without an out-fence a batch may wait for later commands; none behind it has a fence then. */
static int judge_batch_points(struct embeng_queue *q, struct embeng_batch *batch)
{
	struct embeng_need *need = &batch->job->need;
	u32 i;
	int ret;

	for (i = 0; i < batch->count; i++) {
		if (batch->commands[i].opcode != EMBENG_OP_FENCE)
			continue;
		ret = embeng_points_judge(q, &batch->commands[i], need);
		if (ret && batch->fenced)
			return ret;
		if (ret)
			need->applied = EMBENG_NEED_UNKNOWN;
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

/* Under reset_lock the context is not lost meanwhile, and the doorbell stays the queue's. */
static int submit_batch(struct embeng_queue *q, struct embeng_batch *batch, u32 head)
{
	int ret;

	CLASS(embeng_talk, ed)(q->context->device);
	if (!ed)
		return -EINTR;
	ret = embeng_context_usable(q->context);
	if (ret)
		return ret;
	guard(mutex)(&q->lock);
	if (q->destroyed)
		return -ENOENT;
	ret = embeng_ring_consume(q, head);
	if (ret)
		return ret;
	return embeng_submit_take(q, batch);
}

/**
 * embeng_submit_model() - submit a MODEL_LOAD command that the driver made
 * @q: validated queue
 * @cmd: command, checked by the caller
 * @model: options of the model that it loads, NULL if it extends the loaded one
 * @index: set to the command's index, free-running
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_submit_model(struct embeng_queue *q, struct embeng_cmd *cmd,
			const struct embeng_record_engine *model, u32 *index)
{
	struct embeng_batch batch = {
		.commands = cmd,
		.count = 1,
		.owed = embeng_completions(cmd->opcode),
		.model = model,
		.job = embeng_job_new(q->context, 1, 0),
	};
	int ret;

	if (!batch.job)
		return -ENOMEM;
	ret = submit_batch(q, &batch, READ_ONCE(q->cq_head));
	if (ret)
		embeng_job_free(batch.job);
	else
		*index = batch.index;
	return ret;
}

/* Points are published after the batch was taken, so that each has a fence that will signal. */
static int submit_fenced_batch(struct embeng_queue *q, struct embeng_batch *batch, u32 head,
			       struct embeng_sync_outs *outs)
{
	struct embeng_fence *fence = outs ? embeng_fence_new() : NULL;
	int ret;

	if (outs && !fence)
		return -ENOMEM;
	batch->fenced = fence;
	batch->job->fence = fence;
	if (fence || batch->job->wait_count)
		WRITE_ONCE(q->context->synced, true);
	if (fence)
		embeng_watch_refresh(q->context);
	ret = judge_batch_points(q, batch);
	if (!ret)
		ret = submit_batch(q, batch, head);
	if (!ret) {
		embeng_watch_on(q->context);
		if (outs)
			embeng_syncs_publish(outs, batch->out);
	}
	if (ret && fence)
		embeng_fence_end(fence, 0);
	dma_fence_put(batch->out);
	return ret;
}

/* The parts of a submit that stand in memory of the program, copied while nothing is held. */
struct submission {
	struct embeng_cmd *commands;
	struct embeng_accel_sync *ins;
	struct embeng_accel_sync *outs;
};

static void free_submission(struct submission *s)
{
	kvfree(s->commands);
	if (!IS_ERR(s->ins))
		kfree(s->ins);
	if (!IS_ERR(s->outs))
		kfree(s->outs);
}

/* Pages of the program may never come: no lock is held, nor `users`, nor a queue. */
static int copy_submission(const struct embeng_accel_submit *arg, struct submission *s)
{
	int ret;

	s->commands = kvmalloc_array(arg->count, sizeof(*s->commands), EMBENG_GFP_WISH);
	if (!s->commands)
		return -ENOMEM;
	ret = copy_commands(arg, s->commands);
	if (ret)
		return ret;
	s->ins = embeng_syncs_copy(arg->in_syncs, arg->in_count);
	if (IS_ERR(s->ins))
		return PTR_ERR(s->ins);
	s->outs = embeng_syncs_copy(arg->out_syncs, arg->out_count);
	return PTR_ERR_OR_ZERO(s->outs);
}

static int submit_with_syncs(struct embeng_queue *q, struct drm_file *file,
			     struct embeng_accel_submit *arg, const struct submission *s,
			     struct embeng_batch *batch)
{
	struct embeng_sync_outs *outs = NULL;
	int ret = embeng_syncs_in(file, s->ins, batch->job);

	if (ret)
		return ret;
	if (arg->out_count) {
		outs = embeng_syncs_out(file, s->outs, arg->out_count);
		if (IS_ERR(outs))
			return PTR_ERR(outs);
	}
	ret = submit_fenced_batch(q, batch, arg->cq_head, outs);
	if (outs)
		embeng_syncs_free(outs);
	return ret;
}

static int submit_commands(struct embeng_queue *q, struct drm_file *file,
			   struct embeng_accel_submit *arg, const struct submission *s)
{
	struct embeng_batch batch = { .commands = s->commands, .count = arg->count };
	int ret = check_batch(q, &batch);

	if (ret)
		return ret;
	batch.job = embeng_job_new(q->context, arg->count, arg->in_count);
	if (!batch.job)
		return -ENOMEM;
	ret = submit_with_syncs(q, file, arg, s, &batch);
	if (batch.job)
		embeng_job_free(batch.job);
	if (!ret)
		arg->index = batch.index;
	return ret;
}

/*
 * Submits what was copied, or with @s NULL only checks that the queue would take as many commands.
 * The queue is not held in between, since its rings must be free once the driver lets go.
 */
static int submit_to_queue(struct embeng_context *ctx, struct drm_file *file,
			   struct embeng_accel_submit *arg, const struct submission *s)
{
	struct embeng_queue *q;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	q = embeng_queue_get(ctx, arg->queue);
	if (!q)
		return -ENOENT;
	ret = q->mapped || arg->count > q->layout.sq_entries ? -EINVAL : 0;
	if (!ret && s)
		ret = submit_commands(q, file, arg, s);
	embeng_queue_put(q);
	return ret;
}

static int check_submit(const struct embeng_accel_submit *arg)
{
	if (arg->flags || !arg->count || arg->index)
		return -EINVAL;
	if (arg->stride < sizeof(struct embeng_cmd) || arg->stride > STRIDE_MAX)
		return -EINVAL;
	if (arg->in_count > EMBENG_SYNCS_MAX || arg->out_count > EMBENG_SYNCS_MAX)
		return -EINVAL;
	if (!arg->in_count != !arg->in_syncs || !arg->out_count != !arg->out_syncs)
		return -EINVAL;
	return 0;
}

/**
 * embeng_submit_ioctl() - DRM_IOCTL_EMBENG_SUBMIT
 * @drm: device
 * @data: &struct embeng_accel_submit
 * @file: open file with the queue
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_context *ctx = to_embeng_context(file);
	struct embeng_accel_submit *arg = data;
	struct submission s = {};
	int ret = check_submit(arg);

	if (!ret)
		ret = submit_to_queue(ctx, file, arg, NULL);
	if (ret)
		return ret;
	ret = copy_submission(arg, &s);
	if (!ret)
		ret = submit_to_queue(ctx, file, arg, &s);
	free_submission(&s);
	return ret;
}
