// SPDX-License-Identifier: MIT
/*
 * The end of a queue: queue_kill() stops it, and queue_reap() ends what is left in it and frees it,
 * as soon as no thread works for it. A command that runs sees at its next piece that it is to stop.
 * Ending commands needs all that lies between a queue and the
 * model layer, making one needs none of it: so the two are apart.
 *
 * Called with engine->lock held. After queue_reap() returned true the queue is gone.
 */
#include "internal.h"

static void leave_order(struct engine *e, struct queue *q)
{
	u32 at = 0;

	while (e->order[at] != q)
		at++;
	for (e->order_count--; at < e->order_count; at++)
		e->order[at] = e->order[at + 1];
}

void queue_kill(struct queue *q, bool lost)
{
	/* Commands at work look at it without the lock. */
	__atomic_store_n(&q->dying, true, __ATOMIC_RELAXED);
	q->lost = lost;
	if (lost && !q->context)
		ring_die(q);
}

void queue_give_up(struct queue *q, struct command *command)
{
	u16 status = q->hung ? EMBENG_STATUS_HUNG : EMBENG_STATUS_ABORTED;

	fault_set(&command->fault, status, EMBENG_FIELD_NONE, EMBENG_NO_INDEX,
		  q->hung ? command->index : 0, (u64)q->hung_ms * 1000000, q->hung);
	q->hung = false;
	q->hung_ms = 0;
	command_complete(command);
}

bool queue_reap(struct queue *q)
{
	struct engine *e = q->engine;

	if (q->accepting || q->running)
		return false;
	while (q->oldest)
		queue_give_up(q, q->oldest);
	ring_flush(q);
	/* All completions come before the mark: a program that sees it has all of them. */
	if (q->lost)
		ring_die(q);
	leave_order(e, q);
	e->queues[q->number] = NULL;
	queue_free(q);
	return true;
}
