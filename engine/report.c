// SPDX-License-Identifier: MIT
/*
 * A report says why the queues of a context stand still. It is only true when the last look
 * at all of them, under one hold of the lock, found nothing to do.
 */
#include "internal.h"

static void publish(struct queue *q, u32 epoch)
{
	struct embeng_queue_report *shared = &queue_header(q)->report;

	q->reported = (struct embeng_queue_report){
		.epoch = epoch,
		.state = q->state,
		.wait = q->wait.what,
		.replica = q->wait.replica,
		.step = q->wait.step,
		.tail = q->tail_seen,
		.cq_head = q->cq_head_seen,
	};
	embeng_report_begin(&shared->epoch, epoch);
	EMBENG_STORE_RELEASE(&shared->state, q->reported.state);
	EMBENG_STORE_RELEASE(&shared->wait, q->reported.wait);
	EMBENG_STORE_RELEASE(&shared->replica, q->reported.replica);
	EMBENG_STORE_RELEASE(&shared->step, q->reported.step);
	EMBENG_STORE_RELEASE(&shared->tail, q->reported.tail);
	EMBENG_STORE_RELEASE(&shared->cq_head, q->reported.cq_head);
	embeng_report_end(&shared->epoch, epoch);
}

/* Whether the report that all of the context were last told together still says it of the queue. */
static bool is_reported(const struct queue *q)
{
	const struct embeng_queue_report *r = &q->reported;

	return r->epoch && r->epoch == q->context->report_epoch && r->state == q->state &&
	       r->wait == q->wait.what && r->replica == q->wait.replica &&
	       r->step == q->wait.step && r->tail == q->tail_seen && r->cq_head == q->cq_head_seen;
}

static bool changed(struct context *c)
{
	struct engine *e = c->engine;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context == c && !is_reported(e->order[i]))
			return true;
	}
	return false;
}

static bool is_waiting(u32 state)
{
	return state == EMBENG_QUEUE_BLOCKED || state == EMBENG_QUEUE_CQ_FULL;
}

/* All are written before anyone is woken: a sleeper compares them with one another. */
static void report(struct context *c)
{
	struct engine *e = c->engine;
	u32 i;

	c->report_epoch += 2;
	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context != c)
			continue;
		if (is_waiting(e->order[i]->state) && !is_waiting(e->order[i]->reported.state))
			reg_count(e, EMBENG_REG_COUNT_WAITS, 1);
		publish(e->order[i], c->report_epoch);
	}
	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context == c && e->order[i]->state != EMBENG_QUEUE_RUNNING)
			ring_interrupt_if_armed(e->order[i]);
	}
}

static bool has_work(const struct queue *q)
{
	return q->state == EMBENG_QUEUE_RUNNING && (q->oldest || q->tail_seen != q->sq_head);
}

/* Somebody works for it, or nothing will again. */
static bool moves(struct context *c, bool unfinished)
{
	struct engine *e = c->engine;
	u32 i;

	if (c->moving || c->dying)
		return true;
	for (i = 0; i < e->order_count; i++) {
		const struct queue *q = e->order[i];

		if (q->context == c && (q->accepting || q->running || q->dying ||
					(unfinished && has_work(q))))
			return true;
	}
	return false;
}

void report_all(struct engine *e, bool unfinished)
{
	struct context *c;
	u32 i;

	for (i = 0; e->contexts && i < e->caps.contexts; i++) {
		c = e->contexts[i];
		if (c && !moves(c, unfinished) && changed(c))
			report(c);
	}
}
