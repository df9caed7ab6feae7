// SPDX-License-Identifier: MIT
/*
 * Reports why the queues of a context stand still, in the headers of their rings. A report is true
 * only if the last look at all of these queues, under one hold of the lock, found nothing to do.
 *
 * Called with engine->lock held. Each queue keeps its last report.
 */
#include "internal.h"

static void describe_queue(const struct queue *q, struct embeng_queue_report *report)
{
	memset(report, 0, sizeof(*report));
	report->epoch = q->reported.epoch;
	report->state = q->state;
	report->wait = q->wait.what;
	report->replica = q->wait.replica;
	report->step = q->wait.step;
	report->tail = q->tail_seen;
	report->cq_head = q->cq_head_seen;
}

static void publish_report(struct queue *q, u32 epoch)
{
	struct embeng_queue_report *shared = &queue_header(q)->report;

	describe_queue(q, &q->reported);
	q->reported.epoch = epoch;
	embeng_report_begin(&shared->epoch, epoch);
	EMBENG_STORE_RELEASE(&shared->state, q->reported.state);
	EMBENG_STORE_RELEASE(&shared->wait, q->reported.wait);
	EMBENG_STORE_RELEASE(&shared->replica, q->reported.replica);
	EMBENG_STORE_RELEASE(&shared->step, q->reported.step);
	EMBENG_STORE_RELEASE(&shared->tail, q->reported.tail);
	EMBENG_STORE_RELEASE(&shared->cq_head, q->reported.cq_head);
	embeng_report_end(&shared->epoch, epoch);
}

static bool reports_change(struct context *c)
{
	struct engine *e = c->engine;
	struct embeng_queue_report now;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context != c)
			continue;
		describe_queue(e->order[i], &now);
		if (now.epoch != c->report_epoch || !now.epoch ||
		    memcmp(&now, &e->order[i]->reported, sizeof(now)))
			return true;
	}
	return false;
}

static bool is_waiting(u32 state)
{
	return state == EMBENG_QUEUE_BLOCKED || state == EMBENG_QUEUE_CQ_FULL;
}

/* All are written before anyone is woken: a sleeper compares them with one another. */
static void report_context(struct context *c)
{
	struct engine *e = c->engine;
	u32 i;

	c->report_epoch += 2;
	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context != c)
			continue;
		if (is_waiting(e->order[i]->state) && !is_waiting(e->order[i]->reported.state))
			queue_count_wait(e->order[i]);
		publish_report(e->order[i], c->report_epoch);
	}
	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context == c && e->order[i]->state != EMBENG_QUEUE_RUNNING)
			ring_interrupt_if_armed(e->order[i]);
	}
}

static bool goes_on(const struct queue *q)
{
	return q->state == EMBENG_QUEUE_RUNNING && queue_has_work(q);
}

bool report_wanted(const struct engine *e)
{
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		const struct queue *q = e->order[i];

		if (queue_has_work(q) || is_waiting(q->reported.state))
			return true;
	}
	return false;
}

/* Somebody works for it, or nothing will again. */
static bool has_work(struct context *c, bool unfinished)
{
	struct engine *e = c->engine;
	u32 i;

	if (c->moving || c->dying)
		return true;
	for (i = 0; i < e->order_count; i++) {
		const struct queue *q = e->order[i];

		if (q->context == c &&
		    (q->accepting || q->running || q->dying || (unfinished && goes_on(q))))
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
		if (c && !has_work(c, unfinished) && reports_change(c))
			report_context(c);
	}
}
