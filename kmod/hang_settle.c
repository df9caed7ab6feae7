// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that the device will not complete any more: the driver completes them in its place and
 * says what became of them. The command at fault is HUNG, all others are ABORTED.
 *
 * This is the one place where the driver writes completions, so the device must not reach the ring
 * meanwhile: the queue was ended, or the device reset. The caller holds the queue's lock, or
 * reset_lock for writing. A program may have written anything into the ring of a mapped queue;
 * that is believed as far as it can hurt this program alone: indices are checked before they are
 * used, and no loop is longer than a ring.
 */
#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/ktime.h>

#include "context.h"

static struct embeng_cqe *locate_completion(const struct embeng_queue *q, u32 index)
{
	struct embeng_cqe *ring = q->ring + q->layout.cq;

	return &ring[index & (q->layout.cq_entries - 1)];
}

/**
 * embeng_hang_note() - copy the tail and head that only the doorbell has, and a reset clears
 * @q: queue that still owns its doorbell; under map_lock or q->lock
 */
void embeng_hang_note(struct embeng_queue *q)
{
	u32 tail = embeng_doorbell_tail_of(q), head = embeng_doorbell_head_of(q);

	/* Read after the doorbell, which a reset clears and a device that is gone does not have. */
	if (embeng_read32(q->context->device, EMBENG_REG_BOOT_STATE) != EMBENG_BOOT_RUNNING)
		return;
	q->last_tail = q->mapped ? tail : q->given;
	q->last_head = head;
}

/* Completions since the queue was started that the ring still has. */
static u32 count_completions(const struct embeng_queue *q, u32 tail)
{
	return min(tail - q->cq_begin, q->layout.cq_entries);
}

/*
 * Marks in q->answered which commands from @first on have a completion: each completion is read
 * once, however many a program says there are. A refused command may be complete before older ones
 * are.
 */
static void mark_answered_commands(struct embeng_queue *q, u32 first)
{
	u32 tail = embeng_observe_cq_tail(&embeng_queue_header(q)->cq_tail);
	u32 count = count_completions(q, tail), i, at;
	const struct embeng_cqe *cqe;

	bitmap_zero(q->answered, q->layout.sq_entries);
	for (i = 1; i <= count; i++) {
		cqe = locate_completion(q, tail - i);
		at = READ_ONCE(cqe->index) - first;
		if (at < q->layout.sq_entries && READ_ONCE(cqe->flags) & EMBENG_CQE_DONE)
			__set_bit(at, q->answered);
	}
}

/* The newest command below @done that has no completion: its completion was lost. */
static bool find_lost_command(struct embeng_queue *q, u32 done, u32 *index)
{
	u32 tail = embeng_observe_cq_tail(&embeng_queue_header(q)->cq_tail);
	u32 commands = min3(done - q->sq_begin, q->layout.sq_entries,
			    count_completions(q, tail) + 1);
	u32 i;

	mark_answered_commands(q, done - commands);
	for (i = commands; i-- > 0;) {
		if (test_bit(i, q->answered))
			continue;
		*index = done - commands + i;
		return true;
	}
	return false;
}

/**
 * embeng_hang_blame() - find the command at fault
 * @q: queue that hangs
 * @hang: why it hangs
 *
 * It is the oldest command that is not complete, or the one whose completion was lost.
 */
void embeng_hang_blame(struct embeng_queue *q, const struct embeng_hang *hang)
{
	u32 done = READ_ONCE(embeng_queue_header(q)->done), index = done;

	embeng_hang_note(q);
	q->fault_lost = hang->cause == EMBENG_ACCEL_CAUSE_LOST_COMPLETION &&
			find_lost_command(q, done, &index);
	q->at_fault = q->fault_lost || done != q->last_tail;
	q->fault_index = index;
	q->fault_ns = hang->still_ns;
}

static bool post_completion(struct embeng_queue *q, u32 index, u32 rung)
{
	struct embeng_ring_header *header = embeng_queue_header(q);
	u32 tail = READ_ONCE(header->cq_tail);
	const struct embeng_cmd *cmd = embeng_queue_slot(q, index);
	struct embeng_cqe *cqe = locate_completion(q, tail);
	bool hung = q->at_fault && index == q->fault_index;

	if (tail - q->last_head >= q->layout.cq_entries)
		return false;
	*cqe = (struct embeng_cqe){
		.cookie = READ_ONCE(cmd->cookie),
		.status = hung ? EMBENG_STATUS_HUNG : EMBENG_STATUS_ABORTED,
		.flags = EMBENG_CQE_DONE,
		.feature = EMBENG_NO_INDEX,
		.index = index,
		.element = hung ? index : 0,
		.value = hung ? q->fault_ns : 0,
		.limit = hung ? rung : 0,
		.step = READ_ONCE(cmd->step) ?: READ_ONCE(cmd->after),
	};
	if (hung) {
		q->at_fault = false;
		q->context->device->faults++;
	}
	embeng_publish_cq_tail(&header->cq_tail, tail + 1);
	/* Pairs with embeng_ring_lost(). */
	smp_store_release(&header->sent, tail + 1);
	return true;
}

/* Completes the commands that a device had taken when it was reset. */
static void settle_taken_commands(struct embeng_queue *q, u32 head, u32 tail, u32 rung)
{
	u32 first = READ_ONCE(embeng_queue_header(q)->done), i;

	if (head - first > q->layout.sq_entries)
		return;
	mark_answered_commands(q, first);
	/* The slot may hold a newer command already; the cookie of the old one is lost then. */
	for (i = 0; i < head - first; i++) {
		if (tail - first - i <= q->layout.sq_entries && !test_bit(i, q->answered))
			post_completion(q, first + i, rung);
	}
}

/**
 * embeng_hang_settle() - complete the remaining commands, as far as there is room
 * @q: queue whose ring the device does not reach; called with q->lock held, or reset_lock for
 *	writing
 * @rung: rung that was taken, enum embeng_accel_rung
 *
 * Return: the first command that found no room, or the tail.
 */
u32 embeng_hang_settle(struct embeng_queue *q, u32 rung)
{
	struct embeng_ring_header *header = embeng_queue_header(q);
	u32 tail = q->mapped ? q->last_tail : q->sq_tail;
	u32 head = READ_ONCE(header->sq_head), index;

	if (tail - head > q->layout.sq_entries)
		tail = head;
	if (q->at_fault && q->fault_lost)
		post_completion(q, q->fault_index, rung);
	settle_taken_commands(q, head, tail, rung);
	for (index = head; index != tail; index++) {
		if (!post_completion(q, index, rung))
			break;
	}
	q->at_fault = false;
	WRITE_ONCE(header->done, index);
	embeng_publish_sq_head(&header->sq_head, index);
	return index;
}

/**
 * embeng_hang_record() - record for the program what was done about a hang
 * @ctx: context
 * @rung: rung that was taken
 * @hang: why it was taken
 * @q: queue of the command at fault, or NULL
 */
void embeng_hang_record(struct embeng_context *ctx, u32 rung, const struct embeng_hang *hang,
			const struct embeng_queue *q)
{
	const struct embeng_cmd *cmd;

	scoped_guard(spinlock, &ctx->health_lock) {
		ctx->health = (struct embeng_accel_health){
			.count = ctx->health.count + 1,
			.cause = hang->cause,
			.rung = rung,
			.still_ns = hang->still_ns,
			.time_ns = ktime_get_ns(),
		};
		if (!q || !q->at_fault)
			return;
		cmd = embeng_queue_slot(q, q->fault_index);
		ctx->health.queue = q->number;
		ctx->health.index = q->fault_index;
		ctx->health.opcode = READ_ONCE(cmd->opcode);
		ctx->health.cookie = READ_ONCE(cmd->cookie);
		ctx->health.step = READ_ONCE(cmd->step) ?: READ_ONCE(cmd->after);
	}
}
