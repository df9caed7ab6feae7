// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lowest rung: one queue is ended on the device, the driver completes its commands in the
 * device's place, and the queue goes on behind them. Nothing else on the device is disturbed.
 *
 * ctx->lock is held throughout, so that the queue stays. The admin commands that end and begin it
 * hold reset_lock for reading, and may fall back to an engine reset. If a program is killed on the
 * way, the device may not have its queue: the watchdog finds that it stands. In between the ring is
 * the driver's: it is settled under reset_lock held for writing and queue->lock, while nobody
 * submits. A program that rings a mapped queue meanwhile is heard when the queue goes on.
 */
#include <linux/cleanup.h>
#include <linux/ratelimit.h>

#include "context.h"
#include "trace.h"

/* Called with reset_lock held for writing. */
static void complete_commands(struct embeng_queue *q, u32 *sq_index, u32 *cq_index)
{
	struct embeng_device *ed = q->context->device;

	ed->resets.queues++;
	trace_embeng_reset("queue", ed->resets.queues);
	guard(mutex)(&q->lock);
	embeng_hang_note(q);
	*sq_index = embeng_hang_settle(q, EMBENG_ACCEL_RESET_QUEUE);
	if (!q->mapped)
		embeng_ring_settled(q);
	*cq_index = READ_ONCE(embeng_queue_header(q)->cq_tail);
}

/* Completes the queue's commands. A doorbell rung now is noticed when the queue goes on. */
static int settle_queue(struct embeng_queue *q, u32 *sq_index, u32 *cq_index)
{
	struct embeng_device *ed = q->context->device;
	int ret;

	if (down_write_killable(&ed->reset_lock))
		return -EINTR;
	ret = embeng_context_usable(q->context);
	if (!ret)
		complete_commands(q, sq_index, cq_index);
	up_write(&ed->reset_lock);
	return ret;
}

/*
 * True if the machine is told of a reset, by a log line, a uevent or a dump. A program writes what
 * it likes into the ring of a mapped queue: that a completion was lost is its word alone, and
 * reported to the program alone. Nor may a user flood the log, or udev, with resets of its queues.
 */
static bool may_tell(struct embeng_queue *q, const struct embeng_hang *hang)
{
	if (q->mapped && hang->cause == EMBENG_ACCEL_CAUSE_LOST_COMPLETION)
		return false;
	return __ratelimit(&q->context->user->told);
}

/* Records the hang and the command at fault before anything changes. */
static void record_queue_hang(struct embeng_queue *q, const struct embeng_hang *hang, bool tell)
{
	struct embeng_device *ed = q->context->device;

	guard(rwsem_read)(&ed->reset_lock);
	if (embeng_context_usable(q->context))
		return;
	scoped_guard(mutex, &q->lock)
		embeng_hang_blame(q, hang);
	embeng_hang_record(q->context, EMBENG_ACCEL_RESET_QUEUE, hang, q);
	if (!tell)
		return;
	drm_warn(&ed->drm, "queue %u of context %u of %s: %s, it is reset\n",
		 q->number, q->context->number, embeng_program_text(q->context).text,
		 embeng_cause_word(hang->cause));
	embeng_coredump(ed, hang, q->mapped);
}

static int restart_queue(struct embeng_queue *q)
{
	u32 sq_index, cq_index;
	int ret;

	embeng_ring_stop(q);
	ret = embeng_queue_end(q) ?: settle_queue(q, &sq_index, &cq_index);
	if (ret)
		return ret;
	ret = embeng_queue_go_on(q, sq_index, cq_index);
	if (ret && ret != -ESHUTDOWN && ret != -ENODEV && ret != -EINTR) {
		const struct embeng_hang hang = { .cause = EMBENG_ACCEL_CAUSE_REFUSED };

		/* The device may lack memory for it, which costs nobody else anything. */
		ret = embeng_reset_context(q->context, &hang) ?: -ESHUTDOWN;
	}
	return ret;
}

/* True if a program caused or asked for the reset: no command is at fault, no dump is made. */
static bool is_programs_doing(const struct embeng_hang *hang)
{
	return hang->cause == EMBENG_ACCEL_CAUSE_REQUEST ||
	       hang->cause == EMBENG_ACCEL_CAUSE_FENCE;
}

/**
 * embeng_queue_reset() - abort all commands of a queue and let it go on
 * @ctx: context
 * @number: number of the queue
 * @hang: why it is reset; the cause is REQUEST when its program asks for it
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_queue_reset(struct embeng_context *ctx, u32 number, const struct embeng_hang *hang)
{
	struct embeng_queue *q;
	bool tell;
	int ret;

	CLASS(embeng_lock, locked)(ctx);
	if (!locked)
		return -EINTR;
	ret = embeng_context_usable(ctx);
	if (ret)
		return ret;
	/* Queues end under ctx->lock only, so this one stays. */
	q = xa_load(&ctx->queues, number);
	if (!q || q->destroyed || (hang->timeline && hang->timeline != q->timeline))
		return -ENOENT;
	q->at_fault = false;
	tell = may_tell(q, hang);
	if (is_programs_doing(hang))
		embeng_hang_record(ctx, EMBENG_ACCEL_RESET_QUEUE, hang, NULL);
	else
		record_queue_hang(q, hang, tell);
	ret = restart_queue(q);
	embeng_ring_start(q);
	embeng_context_event(ctx);
	if (!ret && tell)
		embeng_reset_tell(ctx->device, EMBENG_ACCEL_RESET_QUEUE, hang);
	return ret;
}
