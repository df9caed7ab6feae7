// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes a batch of commands into a validated queue, all or nothing, if there is room in both rings
 * and the batch can have the out-fence that it asks for.
 *
 * Callers hold queue->lock, and reset_lock for reading. Everything happens under vector->lock, so
 * that an interrupt sees a batch whole or not at all; ledger_lock inside it makes counting and
 * judging one step, so that two queues of a context are not both judged by a ledger that lacks the
 * other. A batch that is refused is taken out of the ledger again under the same hold.
 */
#include <linux/cleanup.h>

#include "context.h"
#include "ring.h"
#include "trace.h"

/* Under vector->lock. */
static bool has_ring_room(const struct embeng_queue *q, const struct embeng_batch *batch)
{
	u32 head = embeng_observe_sq_head(&embeng_queue_header(q)->sq_head);

	return embeng_ring_holds(head, q->sq_tail, batch->count, q->layout.sq_entries) &&
	       embeng_ring_holds(q->cq_head, q->walked, (u64)q->owed + batch->owed,
				 q->layout.cq_entries);
}

/* Adds what the queue's own commands wait for. Return: held jobs. Under vector->lock. */
static u32 gather_queue_needs(const struct embeng_queue *q, struct embeng_need *need)
{
	const struct embeng_job *job;
	u32 held = 0;

	list_for_each_entry(job, &q->jobs, link) {
		held += job->held;
		if (job->left)
			embeng_need_merge(need, &job->need);
	}
	return held;
}

/**
 * embeng_submit_need() - gather the steps that a command of a queue waits for
 * @q: queue
 * @index: index of the command, free-running
 * @need: the needs of the command and of all before it are added here
 */
void embeng_submit_need(struct embeng_queue *q, u32 index, struct embeng_need *need)
{
	const struct embeng_job *job;

	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		list_for_each_entry(job, &q->jobs, link) {
			if ((s32)(job->first - index) > 0)
				break;
			if (job->left)
				embeng_need_merge(need, &job->need);
		}
	}
}

/* A DRAIN covers what was submitted before it, but the engine does not know of held commands. */
static bool has_drain(const struct embeng_batch *batch)
{
	u32 i;

	for (i = 0; i < batch->count; i++) {
		if (batch->commands[i].opcode == EMBENG_OP_DRAIN)
			return true;
	}
	return false;
}

static u64 sum_delays(const struct embeng_batch *batch)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < batch->count; i++) {
		if (batch->commands[i].opcode == EMBENG_OP_NOP)
			sum += batch->commands[i].arg >> EMBENG_NOP_DELAY_SHIFT;
	}
	return sum;
}

static int add_to_ledger(struct embeng_queue *q, const struct embeng_batch *batch)
{
	struct embeng_ledger *ledger = &q->context->ledger;
	int ret = 0;
	u32 i;

	for (i = 0; i < batch->count; i++) {
		if (!ret && batch->fenced)
			ret = embeng_ledger_can_fence(ledger, q->kind, &batch->commands[i]);
		embeng_ledger_add(ledger, q->kind, q->replica, &batch->commands[i]);
	}
	return ret;
}

/* A NOP may be as late as its program likes, but no fence may. Under ledger_lock. */
static int judge_delays(const struct embeng_queue *q, const struct embeng_batch *batch)
{
	u64 own = batch->job->delay_us;

	if (own > EMBENG_ACCEL_FENCED_DELAY_MAX)
		return -EOPNOTSUPP;
	return own + atomic64_read(&q->context->delay_us) > EMBENG_ACCEL_FENCED_DELAY_MAX ?
	       -EAGAIN : 0;
}

/*
 * Enters the whole batch in the ledger before any of it is judged, and takes it out again if it is
 * refused. Under vector->lock and ledger_lock.
 */
static int judge_batch(struct embeng_queue *q, struct embeng_batch *batch)
{
	struct embeng_context *ctx = q->context;
	struct embeng_need *need = &batch->job->need, all;
	struct embeng_ledger_mark mark;
	u32 i, held;
	int ret;

	mark = embeng_ledger_mark(&ctx->ledger, q->kind, q->replica);
	ret = add_to_ledger(q, batch);
	for (i = 0; i < batch->count; i++)
		embeng_ledger_need(&ctx->ledger, q->kind, q->replica, &batch->commands[i], need);
	all = *need;
	held = gather_queue_needs(q, &all);
	if (!ret && batch->fenced && !embeng_ledger_met(&ctx->ledger, &all))
		ret = -EAGAIN;
	if (!ret && batch->fenced)
		ret = judge_delays(q, batch);
	if (!ret && has_drain(batch) && (u32)atomic_read(&ctx->held) != held)
		ret = -EAGAIN;
	if (ret)
		embeng_ledger_return(&ctx->ledger, q->kind, q->replica, &mark);
	return ret;
}

/* Notes which model is on its way. Under vector->lock and ledger_lock. */
static void expect_model(struct embeng_queue *q, const struct embeng_batch *batch)
{
	struct embeng_context *ctx = q->context;

	if (!batch->model)
		return;
	ctx->loading.queue = q->number;
	ctx->loading.index = batch->index;
	ctx->loading.model = *batch->model;
	embeng_ledger_loading(&ctx->ledger);
}

static int count_batch(struct embeng_queue *q, struct embeng_batch *batch)
{
	int ret;

	scoped_guard(spinlock, &q->context->ledger_lock) {
		ret = judge_batch(q, batch);
		if (!ret)
			expect_model(q, batch);
	}
	return ret;
}

/* Before the doorbell can be rung, which an interrupt may do once the lock is dropped. */
static void trace_batch(const struct embeng_queue *q, const struct embeng_batch *batch)
{
	u32 context = q->context->number, i;

	trace_embeng_submit(context, q->number, batch->index, batch->count);
	for (i = 0; trace_embeng_command_enabled() && i < batch->count; i++)
		trace_embeng_command(context, q->number, q->kind, batch->index + i,
				     &batch->commands[i]);
}

static void enter_batch(struct embeng_queue *q, struct embeng_batch *batch)
{
	struct embeng_job *job = batch->job;
	u32 i;

	job->first = q->sq_tail;
	for (i = 0; i < batch->count; i++)
		*embeng_queue_slot(q, q->sq_tail++) = batch->commands[i];
	q->owed += batch->owed;
	q->in_flight += batch->count;
	/* A job whose in-fence failed already is held too, and voided like one that fails later. */
	job->held = !atomic_dec_and_test(&job->waiting) || job->failed;
	if (job->held)
		atomic_inc(&q->context->held);
	if (job->fence) {
		embeng_fence_begin(job->fence, q->timeline, ++q->seqno);
		batch->out = embeng_fence_get(job->fence);
		atomic_inc(&q->context->fences);
	}
	atomic64_add(job->delay_us, &q->context->delay_us);
	list_add_tail(&job->link, &q->jobs);
	trace_batch(q, batch);
}

/**
 * embeng_submit_take() - take a batch into a queue
 * @q: validated queue, under its lock and reset_lock
 * @batch: checked commands; the queue takes the job over when it takes them
 *
 * Return: 0; -ENOSPC if the rings have no room; -EAGAIN or -EOPNOTSUPP if the batch cannot have the
 * fence that it asks for, or cannot drain yet.
 */
int embeng_submit_take(struct embeng_queue *q, struct embeng_batch *batch)
{
	int ret = -ENOSPC;

	batch->job->delay_us = sum_delays(batch);
	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		batch->index = q->sq_tail;
		if (has_ring_room(q, batch))
			ret = count_batch(q, batch);
		if (!ret)
			enter_batch(q, batch);
	}
	if (ret)
		return ret;
	batch->job = NULL;
	embeng_ring_look(q);
	return 0;
}
