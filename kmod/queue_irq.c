// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts of queues: asking the device for an interrupt, and waking sleepers when one arrives.
 *
 * The driver arms validated queues, whose doorbells it owns. A mapped queue is armed by its
 * program alone. An arm that was not answered yet is only ever moved to an earlier completion, so
 * that each sleeper is woken early enough and looks for itself. A thread that arms a queue looks
 * once more before it sleeps, which makes a race with the device safe; tests/model/arm.pml checks
 * all orders of events.
 *
 * A queue is on the list of its vector from embeng_queue_irq_init() to embeng_queue_irq_exit();
 * after that its doorbell may belong to another queue. vector->lock, which interrupts take, guards
 * the list, the arm and what was noted for events. The timer of a queue ends in
 * embeng_queue_irq_exit().
 */
#include <linux/cleanup.h>

#include "compat/v6.13_hrtimer_setup.h"
#include "context.h"
#include "trace.h"

/* Counts an event if the queue moved since the last look. Under vector->lock. */
static bool note_queue_event(struct embeng_queue *q)
{
	const struct embeng_ring_header *header = embeng_queue_header(q);
	u32 tail = embeng_observe_cq_tail(&header->cq_tail);
	u32 epoch = READ_ONCE(header->report.epoch);

	if (tail == q->noted_tail && epoch == q->noted_epoch)
		return false;
	q->noted_tail = tail;
	q->noted_epoch = epoch;
	trace_embeng_event(q->context->number, q->number, tail, epoch);
	embeng_context_event(q->context);
	return true;
}

/**
 * embeng_queue_irq_arm_locked() - ask for an interrupt when the completion tail passes an index
 * @q: queue, under vector->lock
 * @index: index in the completion ring, free-running
 */
void embeng_queue_irq_arm_locked(struct embeng_queue *q, u32 index)
{
	/* The queue has ended, and another queue may have its doorbell; or a reset has begun. */
	if (list_empty(&q->vector_link) || READ_ONCE(q->context->device->resetting))
		return;
	if (q->pending_arm && (s32)(index - q->arm) > 0)
		index = q->arm;
	q->arm = index;
	q->pending_arm = true;
	embeng_doorbell_write(q->doorbell, arm, index);
	/* writel() keeps the two in this order; the device reads @armed first. */
	embeng_doorbell_write(q->doorbell, armed, ++q->armed);
}

/**
 * embeng_queue_irq_arm() - ask for an interrupt when the completion tail passes an index
 * @q: queue
 * @index: index in the completion ring, free-running
 *
 * The caller looks once more before it sleeps. A mapped queue is not armed.
 */
void embeng_queue_irq_arm(struct embeng_queue *q, u32 index)
{
	unsigned long flags;

	spin_lock_irqsave(&q->vector->lock, flags);
	if (!q->mapped)
		embeng_queue_irq_arm_locked(q, index);
	embeng_arm_then_recheck();
	note_queue_event(q);
	spin_unlock_irqrestore(&q->vector->lock, flags);
}

/* Counts an event if anything happened so far, and arms for @coalesce more completions. */
static void arm_next_event(struct embeng_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->vector->lock, flags);
	note_queue_event(q);
	if (!q->mapped) {
		embeng_queue_irq_arm_locked(q, q->noted_tail + q->coalesce - 1);
		/* The timer is not started again once the queue has ended. */
		if (q->coalesce > 1 && !list_empty(&q->vector_link))
			hrtimer_start(&q->timer, ns_to_ktime((u64)q->coalesce_us * NSEC_PER_USEC),
				      HRTIMER_MODE_REL);
	}
	embeng_arm_then_recheck();
	note_queue_event(q);
	spin_unlock_irqrestore(&q->vector->lock, flags);
}

/* False once a reset has begun: it copies the doorbells first and clears them. */
static bool are_doorbells_valid(const struct embeng_context *ctx)
{
	return !READ_ONCE(ctx->device->resetting) && !embeng_context_usable(ctx);
}

/**
 * embeng_queue_irq_arm_all() - arm all queues of a context: the next event of any is counted
 * @ctx: context
 */
void embeng_queue_irq_arm_all(struct embeng_context *ctx)
{
	struct embeng_queue *q;
	unsigned long number;
	bool count;

	guard(mutex)(&ctx->map_lock);
	count = are_doorbells_valid(ctx);
	xa_for_each(&ctx->queues, number, q) {
		/* Keeps what the program rang before it went to sleep. */
		if (q->mapped && count)
			embeng_hang_note(q);
		arm_next_event(q);
	}
}

/**
 * embeng_queue_irq_look() - count an event whose interrupt may have been lost
 * @q: queue
 */
void embeng_queue_irq_look(struct embeng_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->vector->lock, flags);
	if (!list_empty(&q->vector_link) && note_queue_event(q))
		q->pending_arm = false;
	spin_unlock_irqrestore(&q->vector->lock, flags);
}

/**
 * embeng_queue_irq_handle() - handle an interrupt for the queues of a vector
 * @vector: vector that fired
 */
void embeng_queue_irq_handle(struct embeng_vector *vector)
{
	struct embeng_queue *q;
	LIST_HEAD(done);

	spin_lock(&vector->lock);
	list_for_each_entry(q, &vector->queues, vector_link) {
		if (note_queue_event(q))
			q->pending_arm = false;
		embeng_ring_interrupt(q, &done);
	}
	spin_unlock(&vector->lock);
	embeng_jobs_end(&done);
}

/* Fewer than @coalesce completions came in time, so the next one makes an event. */
static enum hrtimer_restart end_coalescing(struct hrtimer *timer)
{
	struct embeng_queue *q = container_of(timer, struct embeng_queue, timer);

	unsigned long flags;

	spin_lock_irqsave(&q->vector->lock, flags);
	embeng_queue_irq_arm_locked(q, q->noted_tail);
	embeng_arm_then_recheck();
	note_queue_event(q);
	spin_unlock_irqrestore(&q->vector->lock, flags);
	return HRTIMER_NORESTART;
}

/**
 * embeng_queue_irq_hold_off() - wait for who may still be writing to a doorbell under vector->lock
 * @ed: device, after ed->resetting was set, with which nobody begins to
 */
void embeng_queue_irq_hold_off(struct embeng_device *ed)
{
	u32 i;

	for (i = 0; i < ed->vector_count; i++) {
		spin_lock_irq(&ed->vectors[i].lock);
		spin_unlock_irq(&ed->vectors[i].lock);
	}
}

/**
 * embeng_queue_irq_init() - add a queue to the list of its vector
 * @q: queue
 */
void embeng_queue_irq_init(struct embeng_queue *q)
{
	unsigned long flags;

	hrtimer_setup(&q->timer, end_coalescing, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	spin_lock_irqsave(&q->vector->lock, flags);
	list_add_tail(&q->vector_link, &q->vector->queues);
	spin_unlock_irqrestore(&q->vector->lock, flags);
}

/**
 * embeng_queue_irq_exit() - take a queue off the list of its vector; no interrupt reads its ring
 * after this
 * @q: queue
 */
void embeng_queue_irq_exit(struct embeng_queue *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->vector->lock, flags);
	list_del_init(&q->vector_link);
	spin_unlock_irqrestore(&q->vector->lock, flags);
	hrtimer_cancel(&q->timer);
}
