// SPDX-License-Identifier: MIT
/*
 * The shared words of a queue. Indices that the program writes are read once per look,
 * checked, and only the checked copy is used.
 */
#include "internal.h"

static enum ring_look stop(struct queue *q)
{
	q->state = EMBENG_QUEUE_ERROR;
	return RING_STOPPED;
}

enum ring_look ring_look(struct queue *q)
{
	u32 tail, head;

	if (q->state == EMBENG_QUEUE_ERROR)
		return RING_STOPPED;
	tail = embeng_observe_tail(&q->doorbell->sq_tail);
	head = embeng_observe_cq_head(&q->doorbell->cq_head);
	q->tail_seen = tail;
	if (tail - q->sq_head > q->layout.sq_entries)
		return stop(q);
	if (q->cq_tail - head > q->layout.cq_entries)
		return stop(q);
	q->cq_head_seen = head;
	return tail == q->sq_head ? RING_EMPTY : RING_COMMAND;
}

void ring_copy(struct queue *q, void *command)
{
	u32 slot = q->sq_head & (q->layout.sq_entries - 1);

	memcpy(command, (u8 *)q->ring + q->layout.sq + (u64)slot * sizeof(struct embeng_cmd),
	       sizeof(struct embeng_cmd));
}

void ring_consume(struct queue *q)
{
	q->sq_head++;
	embeng_publish_sq_head(&queue_header(q)->sq_head, q->sq_head);
}

u32 ring_space(struct queue *q)
{
	return q->layout.cq_entries - (q->cq_tail - q->cq_head_seen);
}

/* @always: for a change that no index tells of */
static void interrupt(struct queue *q, bool always)
{
	u32 armed;

	embeng_arm_then_recheck();
	armed = EMBENG_LOAD_ACQUIRE(&q->doorbell->armed);
	if (armed == q->armed)
		return;
	if (!always && (s32)(q->cq_tail - EMBENG_LOAD_ACQUIRE(&q->doorbell->arm)) <= 0)
		return;
	q->armed = armed;
	port_interrupt(q->engine->config.host, q->vector);
}

void ring_interrupt_if_armed(struct queue *q)
{
	interrupt(q, true);
}

void ring_post(struct queue *q, const struct embeng_cqe *cqe)
{
	u32 slot = q->cq_tail & (q->layout.cq_entries - 1);

	memcpy((u8 *)q->ring + q->layout.cq + (u64)slot * sizeof(*cqe), cqe, sizeof(*cqe));
	q->cq_tail++;
	embeng_publish_cq_tail(&queue_header(q)->cq_tail, q->cq_tail);
	interrupt(q, false);
}
