// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring of a validated queue as the driver accounts for it: what was submitted, how far the
 * doorbell was rung, which completions may still come, and which jobs have ended. All commands
 * stand in the ring from their submission on; the doorbell goes no further than the first one that
 * waits for a fence.
 *
 * vector->lock guards the account, since interrupts walk new completions; ledger_lock is taken
 * inside it. Jobs that have ended are moved to a list of the caller's, and signalled by
 * embeng_jobs_end() after the lock was let go. A mapped queue is its program's, and nothing in it
 * is accounted for.
 */
#include <linux/cleanup.h>

#include "context.h"
#include "ring.h"
#include "trace.h"

static void note_loaded_model(struct embeng_context *ctx, const struct embeng_queue *q,
			      const struct embeng_cqe *cqe)
{
	if (!ctx->loading.queue || ctx->loading.queue != q->number ||
	    ctx->loading.index != cqe->index)
		return;
	if (!cqe->status)
		embeng_ledger_load(&ctx->ledger, &ctx->loading.model);
	else if (ctx->ledger.model == EMBENG_LEDGER_LOADING)
		embeng_ledger_load(&ctx->ledger, NULL);
	ctx->loading.queue = 0;
}

static void note_step_done(const struct embeng_queue *q, const struct embeng_cqe *cqe)
{
	struct embeng_context *ctx = q->context;

	scoped_guard(spinlock, &ctx->ledger_lock) {
		embeng_ledger_done(&ctx->ledger, q->kind, q->replica, cqe->step, cqe->status);
		note_loaded_model(ctx, q, cqe);
	}
}

static void note_job_done(struct embeng_queue *q, const struct embeng_cqe *cqe)
{
	struct embeng_job *job;

	list_for_each_entry(job, &q->jobs, link) {
		if (cqe->index - job->first >= job->count)
			continue;
		job->left -= job->left > 0;
		if (!job->error)
			job->error = embeng_fence_errno(cqe->status);
		return;
	}
}

/* Moves jobs that have ended to @done, in order, because fences of a queue signal in order. */
static void retire_jobs(struct embeng_queue *q, struct list_head *done)
{
	struct embeng_job *job, *next;

	list_for_each_entry_safe(job, next, &q->jobs, link) {
		if (job->left)
			return;
		if (job->fence)
			atomic_dec(&q->context->fences);
		atomic64_sub(job->delay_us, &q->context->delay_us);
		list_move_tail(&job->link, done);
	}
}

static void note_command_done(struct embeng_queue *q, const struct embeng_cqe *cqe)
{
	q->in_flight -= q->in_flight > 0;
	note_step_done(q, cqe);
	note_job_done(q, cqe);
}

/* Under vector->lock, while the device has the queue. */
static void walk_completions(struct embeng_queue *q, struct list_head *done)
{
	const struct embeng_cqe *ring = q->ring + q->layout.cq, *cqe;
	u32 tail = embeng_observe_cq_tail(&embeng_queue_header(q)->cq_tail);

	/* Completions that a reset posts are left out: the fences end with the reset's error. */
	if (READ_ONCE(q->context->device->resetting) || tail - q->walked > q->layout.cq_entries)
		return;
	for (; q->walked != tail; q->walked++) {
		cqe = &ring[q->walked & (q->layout.cq_entries - 1)];
		trace_embeng_complete(q->context->number, q->number, cqe);
		q->owed -= q->owed > 0;
		if (READ_ONCE(cqe->flags) & EMBENG_CQE_DONE)
			note_command_done(q, cqe);
	}
	/* A refused LOOKUP posts one completion less than it might have. */
	if (!q->in_flight)
		q->owed = 0;
	retire_jobs(q, done);
}

/* Turns a command into a NOP that waits for nothing and ends as ABORTED, with the same cookie. */
static void void_command(struct embeng_queue *q, u32 index)
{
	struct embeng_cmd *cmd = embeng_queue_slot(q, index);

	scoped_guard(spinlock, &q->context->ledger_lock)
		embeng_ledger_done(&q->context->ledger, q->kind, q->replica, cmd->step,
				   EMBENG_STATUS_ABORTED);
	*cmd = (struct embeng_cmd){
		.opcode = EMBENG_OP_NOP,
		.cookie = cmd->cookie,
		.arg = EMBENG_STATUS_ABORTED,
	};
}

static void void_commands(struct embeng_queue *q, u32 first, u32 end)
{
	for (; first != end; first++) {
		q->owed -= embeng_completions(embeng_queue_slot(q, first)->opcode) - 1;
		void_command(q, first);
	}
}

static void release_held_job(struct embeng_queue *q, struct embeng_job *job)
{
	job->held = false;
	atomic_dec(&q->context->held);
	if (!job->failed)
		return;
	/* Gradients that nobody computed must not reach the tables. */
	job->error = job->failed;
	void_commands(q, job->first, job->first + job->count);
}

/* Under vector->lock, while the device has the queue. */
static void ring_doorbell(struct embeng_queue *q)
{
	struct embeng_job *job;
	u32 to = q->sq_tail;

	if (q->stopped || READ_ONCE(q->context->device->resetting))
		return;
	list_for_each_entry(job, &q->jobs, link) {
		if (!job->held)
			continue;
		if (!embeng_job_ready(job)) {
			to = job->first;
			break;
		}
		release_held_job(q, job);
	}
	if (to == q->given)
		return;
	trace_embeng_submit_take(q->context->number, q->number, q->given, to - q->given);
	q->given = to;
	/* writel() orders the commands before the doorbell. */
	embeng_doorbell_write(q->doorbell, sq_tail, to);
}

static struct embeng_job *find_fenced_job(const struct embeng_queue *q)
{
	struct embeng_job *job;

	list_for_each_entry(job, &q->jobs, link) {
		if (job->fence)
			return job;
	}
	return NULL;
}

/* Arms the interrupt for the oldest fence of the queue. Under vector->lock. */
static void arm_for_fences(struct embeng_queue *q, struct list_head *done)
{
	struct embeng_job *job;
	u32 seen;

	do {
		job = find_fenced_job(q);
		if (!job)
			return;
		seen = q->walked;
		/* Each of the job's remaining commands posts at least one completion. */
		embeng_queue_irq_arm_locked(q, seen + max(job->left, 1u) - 1);
		embeng_arm_then_recheck();
		walk_completions(q, done);
	} while (q->walked != seen);
}

/**
 * embeng_ring_interrupt() - retire jobs after an interrupt of the queue's vector
 * @q: queue, under vector->lock
 * @done: jobs that have ended are added here; the caller passes them to embeng_jobs_end() once it
 *	has dropped the lock
 */
void embeng_ring_interrupt(struct embeng_queue *q, struct list_head *done)
{
	u32 epoch;

	if (q->mapped || !find_fenced_job(q))
		return;
	walk_completions(q, done);
	arm_for_fences(q, done);
	epoch = READ_ONCE(embeng_queue_header(q)->report.epoch);
	if (epoch == q->judged_epoch)
		return;
	/* The report may say that the queue of a fence is blocked. */
	q->judged_epoch = epoch;
	embeng_watch_now(q->context);
}

/**
 * embeng_ring_look() - retire jobs that have ended, and ring for commands that may run
 * @q: queue
 */
void embeng_ring_look(struct embeng_queue *q)
{
	LIST_HEAD(done);

	if (q->mapped)
		return;
	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		if (list_empty(&q->vector_link))
			return;
		ring_doorbell(q);
		walk_completions(q, &done);
		arm_for_fences(q, &done);
	}
	embeng_jobs_end(&done);
}

/**
 * embeng_ring_consume() - tell the device which completions the program has read
 * @q: validated queue, under its lock and reset_lock
 * @head: index after the last completion that was read, free-running
 *
 * Return: 0, or -EINVAL when @head is below the previous head or beyond the tail.
 */
int embeng_ring_consume(struct embeng_queue *q, u32 head)
{
	LIST_HEAD(done);
	int ret = 0;

	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		walk_completions(q, &done);
		if (!embeng_ring_between(head, q->cq_head, q->walked)) {
			ret = -EINVAL;
		} else if (head != q->cq_head) {
			embeng_doorbell_write(q->doorbell, cq_head, head);
			q->cq_head = head;
		}
	}
	embeng_jobs_end(&done);
	return ret;
}

/**
 * embeng_ring_stop() - stop ringing the doorbell of a queue
 * @q: queue
 */
void embeng_ring_stop(struct embeng_queue *q)
{
	scoped_guard(spinlock_irqsave, &q->vector->lock)
		q->stopped = true;
}

/**
 * embeng_ring_void() - abort all commands of a queue that the device has let go of for good
 * @q: queue that was taken out of its context
 */
void embeng_ring_void(struct embeng_queue *q)
{
	LIST_HEAD(done);
	u32 head;

	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		walk_completions(q, &done);
		head = embeng_observe_sq_head(&embeng_queue_header(q)->sq_head);
		if (q->sq_tail - head > q->layout.sq_entries)
			head = q->sq_tail;
		void_commands(q, head, q->sq_tail);
	}
	embeng_jobs_end(&done);
	embeng_ring_end(q, -ECANCELED);
}

/**
 * embeng_ring_settled() - account for commands that the driver has completed itself
 * @q: validated queue that is stopped, under its lock
 */
void embeng_ring_settled(struct embeng_queue *q)
{
	LIST_HEAD(done);

	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		walk_completions(q, &done);
		q->given = q->sq_tail;
		embeng_doorbell_write(q->doorbell, sq_tail, q->given);
	}
	embeng_jobs_end(&done);
	embeng_ring_end(q, -ECANCELED);
}

/**
 * embeng_ring_start() - ring the doorbell of a stopped queue again
 * @q: stopped queue
 */
void embeng_ring_start(struct embeng_queue *q)
{
	scoped_guard(spinlock_irqsave, &q->vector->lock)
		q->stopped = false;
	embeng_ring_look(q);
}

/**
 * embeng_ring_end() - end all fences of a queue now
 * @q: queue whose commands the device does not run any more
 * @error: error for fences that have none yet
 */
void embeng_ring_end(struct embeng_queue *q, int error)
{
	struct embeng_job *job;
	LIST_HEAD(done);

	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		list_for_each_entry(job, &q->jobs, link) {
			if (job->held)
				atomic_dec(&q->context->held);
			if (job->fence)
				atomic_dec(&q->context->fences);
			atomic64_sub(job->delay_us, &q->context->delay_us);
			job->held = false;
			job->error = job->error ?: error;
		}
		list_splice_init(&q->jobs, &done);
	}
	embeng_jobs_end(&done);
}
