// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watch of a context. It keeps the rule that no fence depends on what a program may choose not
 * to do: when a command that a fence depends on was refused after it was submitted, or the engine
 * reports that it has seen all that was submitted and waits for the program, then the queue of
 * that fence is reset, and the fence ends with an error. The watch also has held commands rung
 * once their in-fences have signalled, and looks once a second while there is a fence or a
 * sleeper, so that a lost interrupt costs a second and no more.
 *
 * It is a work of the device's own workqueue, one for each context, and ends before its context
 * does. It takes map_lock, inside it vector->lock and ledger_lock, and for a reset ctx->lock with
 * none of these held.
 *
 * Others hold those locks while they allocate, and a reset allocates for its dump before it ends
 * fences. Reclaim waits for no fence of this driver, because none stands in a reservation object
 * of memory; but it may wait for another driver's work that a program has made wait for one. The
 * watchdog does not see that, and memory has to come from elsewhere then.
 */
#include <linux/cleanup.h>

#include "context.h"

#define LOOK_AGAIN HZ

static const struct embeng_hang hopeless = { .cause = EMBENG_ACCEL_CAUSE_FENCE };

/**
 * embeng_watch_now() - run the watch of a context as soon as possible
 * @ctx: context; any context of execution
 */
void embeng_watch_now(struct embeng_context *ctx)
{
	mod_delayed_work(ctx->device->work, &ctx->watch, 0);
}

struct seen {
	u32 epoch;
	u32 state;
	bool still; /* the report covers all submits and reads */
};

static u32 read_submitted_tail(const struct embeng_queue *q)
{
	return q->mapped ? embeng_doorbell_tail_of(q) : q->sq_tail;
}

/* Under vector->lock. */
static struct seen read_queue_report(const struct embeng_queue *q)
{
	const struct embeng_queue_report *report = &embeng_queue_header(q)->report;
	struct seen seen = { .epoch = embeng_report_read_begin(&report->epoch) };

	seen.state = READ_ONCE(report->state);
	if (READ_ONCE(q->context->device->resetting))
		return seen;
	seen.still = READ_ONCE(report->tail) == read_submitted_tail(q) &&
		     READ_ONCE(report->cq_head) == embeng_doorbell_head_of(q);
	if (!seen.epoch || seen.epoch & 1 ||
	    embeng_report_read_retry(&report->epoch, seen.epoch))
		seen.still = false;
	return seen;
}

/*
 * Return: the epoch of a report in which all queues of the context stand still, and which covers
 * all that was submitted to them, or 0. Under map_lock.
 */
static u32 find_standing_epoch(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;
	u32 epoch = 0;

	if (atomic_read(&ctx->held))
		return 0;
	xa_for_each(&ctx->queues, number, q) {
		struct seen seen = {};

		if (q->destroyed)
			continue;
		scoped_guard(spinlock_irqsave, &q->vector->lock) {
			if (!list_empty(&q->vector_link))
				seen = read_queue_report(q);
		}
		if (!seen.still || (epoch && seen.epoch != epoch))
			return 0;
		epoch = seen.epoch;
	}
	return epoch;
}

/*
 * True if the oldest fence of a queue cannot signal: it depends on commands that were not
 * submitted, or the queue is blocked and all queues stand still. Under vector->lock and
 * ledger_lock.
 */
static bool is_fence_stuck(struct embeng_queue *q, bool standing)
{
	struct embeng_need need = {};
	struct embeng_job *job;

	if (list_empty(&q->vector_link) || q->stopped)
		return false;
	list_for_each_entry(job, &q->jobs, link) {
		if (!job->left)
			continue;
		embeng_need_merge(&need, &job->need);
		if (!job->fence)
			continue;
		return !embeng_ledger_met(&q->context->ledger, &need) ||
		       (standing && read_queue_report(q).state != EMBENG_QUEUE_RUNNING);
	}
	return false;
}

static bool check_fence_stuck(struct embeng_queue *q, bool standing)
{
	bool stuck = false;

	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		scoped_guard(spinlock, &q->context->ledger_lock)
			stuck = is_fence_stuck(q, standing);
	}
	return stuck;
}

/* Return: number of a queue with a fence that cannot signal, or 0. */
static u32 find_stuck_queue(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;
	bool standing;
	u32 epoch;

	guard(mutex)(&ctx->map_lock);
	epoch = find_standing_epoch(ctx);
	/* If two passes agree, nothing was submitted to any queue during the first one. */
	standing = epoch && find_standing_epoch(ctx) == epoch;
	xa_for_each(&ctx->queues, number, q) {
		if (!q->mapped && check_fence_stuck(q, standing))
			return number;
	}
	return 0;
}

static void look_at_all_queues(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;

	guard(mutex)(&ctx->map_lock);
	xa_for_each(&ctx->queues, number, q) {
		embeng_ring_look(q);
		embeng_queue_irq_look(q);
	}
}

static void watch_fences(struct work_struct *work)
{
	struct embeng_context *ctx = container_of(to_delayed_work(work), struct embeng_context,
						  watch);
	u32 number;

	look_at_all_queues(ctx);
	while (atomic_read(&ctx->fences)) {
		number = find_stuck_queue(ctx);
		if (!number || embeng_queue_reset(ctx, number, &hopeless))
			break;
		drm_dbg(&ctx->device->drm, "queue %u: its fences can not signal any more\n",
			number);
	}
	embeng_watch_on(ctx);
}

/**
 * embeng_watch_on() - schedule the next look, if there is a fence or a sleeper
 * @ctx: context
 */
void embeng_watch_on(struct embeng_context *ctx)
{
	if (embeng_gone(ctx->device))
		return;
	if (atomic_read(&ctx->fences) || atomic_read(&ctx->held) || wq_has_sleeper(&ctx->wait))
		queue_delayed_work(ctx->device->work, &ctx->watch, LOOK_AGAIN);
}

/**
 * embeng_watch_refresh() - bring the ledger up to date with the completions
 * @ctx: context
 */
void embeng_watch_refresh(struct embeng_context *ctx)
{
	look_at_all_queues(ctx);
}

/**
 * embeng_watch_init() - set up the watch of a new context
 * @ctx: context
 */
void embeng_watch_init(struct embeng_context *ctx)
{
	INIT_DELAYED_WORK(&ctx->watch, watch_fences);
}

/**
 * embeng_watch_exit() - stop the watch of a context for good
 * @ctx: context, not under its lock
 */
void embeng_watch_exit(struct embeng_context *ctx)
{
	disable_delayed_work_sync(&ctx->watch);
}
