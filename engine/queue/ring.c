// SPDX-License-Identifier: MIT
/*
 * The words that a queue shares with a program: submission and completion rings, doorbell and
 * header. Indices that the program writes are read once per look and checked, and only the checked
 * copy is used.
 *
 * Called with engine->lock held. The memory is mapped by queue.c for the life of the queue.
 */
#include "internal.h"

struct embeng_ring_header *queue_header(struct queue *q)
{
	return (struct embeng_ring_header *)((u8 *)q->ring + q->layout.header);
}

static enum ring_look stop_queue(struct queue *q, u32 head)
{
	q->state = EMBENG_QUEUE_ERROR;
	event_of_queue(q, EMBENG_EVENT_QUEUE_STOPPED, q->tail_seen, head);
	return RING_STOPPED;
}

/* @always: for a change that no index tells of */
static void raise_interrupt(struct queue *q, bool always)
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

static void publish_completions(struct queue *q)
{
	if (q->engine->cut_off || (q->publish_ns && q->publish_ns > port_now_ns()))
		return;
	q->publish_ns = 0;
	q->late = false;
	embeng_publish_cq_tail(&queue_header(q)->cq_tail, q->cq_tail);
	EMBENG_STORE_RELEASE(&queue_header(q)->sent, q->sent);
	ring_publish_done(q);
	raise_interrupt(q, false);
}

void ring_publish_done(struct queue *q)
{
	if (!q->publish_ns && !q->engine->cut_off)
		EMBENG_STORE_RELEASE(&queue_header(q)->done, q->completed);
}

void ring_flush(struct queue *q)
{
	q->publish_ns = 0;
	publish_completions(q);
}

enum ring_look ring_look(struct queue *q)
{
	u32 tail, head;

	if (q->publish_ns)
		publish_completions(q);
	if (q->state == EMBENG_QUEUE_ERROR)
		return RING_STOPPED;
	tail = embeng_observe_tail(&q->doorbell->sq_tail);
	head = embeng_observe_cq_head(&q->doorbell->cq_head);
	q->tail_seen = tail;
	if (tail - q->sq_head > q->layout.sq_entries)
		return stop_queue(q, head);
	if (q->cq_tail - head > q->layout.cq_entries)
		return stop_queue(q, head);
	q->cq_head_seen = head;
	if (tail == q->sq_head)
		return RING_EMPTY;
	if (fault_strikes(q->engine, PORT_FAULT_STALL_QUEUE, q->number))
		q->stalled = true;
	return q->stalled ? RING_EMPTY : RING_COMMAND;
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

void ring_die(struct queue *q)
{
	if (q->engine->cut_off)
		return;
	EMBENG_STORE_RELEASE(&queue_header(q)->dead, 1);
	raise_interrupt(q, true);
}

void ring_interrupt_if_armed(struct queue *q)
{
	raise_interrupt(q, true);
}

void ring_post(struct queue *q, const struct embeng_cqe *cqe, u64 seen_ns)
{
	u32 slot = q->cq_tail & (q->layout.cq_entries - 1);
	struct embeng_cqe copy = *cqe;
	u64 delay;

	q->sent++;
	if (fault_strikes(q->engine, PORT_FAULT_DROP_COMPLETION, q->number)) {
		publish_completions(q);
		return;
	}
	if (fault_strikes(q->engine, PORT_FAULT_CORRUPT_COMPLETION, q->number))
		copy.cookie = ~copy.cookie;
	delay = fault_strikes(q->engine, PORT_FAULT_DELAY_COMPLETION, q->number);
	if (delay) {
		seen_ns = port_now_ns() + delay;
		q->late = true;
	}
	if (seen_ns > q->publish_ns)
		q->publish_ns = seen_ns;
	if (!q->engine->cut_off)
		memcpy((u8 *)q->ring + q->layout.cq + (u64)slot * sizeof(copy), &copy,
		       sizeof(copy));
	q->cq_tail++;
	publish_completions(q);
}
