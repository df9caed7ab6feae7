// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that the device will not complete any more: the driver completes them in its place and
 * says what became of them. The command at fault is HUNG, all others are ABORTED.
 *
 * This is the one place where the driver writes completions, so the device must not reach the ring
 * meanwhile: the queue was ended, or the device reset. The caller holds the queue's lock, or
 * reset_lock for writing. A program may have written anything into the ring of a mapped queue;
 * that is believed as far as it can hurt this program alone, and indices are checked before they
 * are used.
 */
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

/* A refused command may be complete before older ones are. */
static bool is_command_answered(const struct embeng_queue *q, u32 index)
{
	u32 tail = embeng_observe_cq_tail(&embeng_queue_header(q)->cq_tail);
	u32 count = min(tail - q->cq_begin, q->layout.cq_entries), i;
	const struct embeng_cqe *cqe;

	for (i = 1; i <= count; i++) {
		cqe = locate_completion(q, tail - i);
		if (READ_ONCE(cqe->index) == index && READ_ONCE(cqe->flags) & EMBENG_CQE_DONE)
			return true;
	}
	return false;
}

/* The newest command below @done that has no completion: its completion was lost. */
static bool find_lost_command(const struct embeng_queue *q, u32 done, u32 *index)
{
	u32 tail = embeng_observe_cq_tail(&embeng_queue_header(q)->cq_tail);
	u32 completions = min(tail - q->cq_begin, q->layout.cq_entries);
	u32 commands = min3(done - q->sq_begin, q->layout.sq_entries, completions + 1);
	u32 i;

	for (i = 1; i <= commands; i++) {
		if (is_command_answered(q, done - i))
			continue;
		*index = done - i;
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
	u32 index = READ_ONCE(embeng_queue_header(q)->done);

	if (head - index > q->layout.sq_entries)
		return;
	/* The slot may hold a newer command already; the cookie of the old one is lost then. */
	for (; index != head; index++) {
		cond_resched();
		if (tail - index <= q->layout.sq_entries && !is_command_answered(q, index))
			post_completion(q, index, rung);
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
 * @ctx: context; called under its lock, or with reset_lock held for writing
 * @rung: rung that was taken
 * @hang: why it was taken
 * @q: queue of the command at fault, or NULL
 */
void embeng_hang_record(struct embeng_context *ctx, u32 rung, const struct embeng_hang *hang,
			const struct embeng_queue *q)
{
	const struct embeng_cmd *cmd;

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
