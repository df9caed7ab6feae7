// SPDX-License-Identifier: MIT
/*
 * Shares the device between contexts by the time that it works for them (start-time fair queueing):
 * each context has a tag in a virtual time, which moves on by what it was served, and the least tag is
 * next. So neither more queues nor longer commands give a context more than its share, and one that
 * was idle begins where the others stand. Priorities above the ordinary ones, which need a privilege,
 * come before all shares; the ordinary ones order the queues of one context.
 *
 * Called with engine->lock held. A tag lives as long as its context.
 */
#include "internal.h"

/* Priorities up to here need no privilege, and are equal between contexts. */
#define ORDINARY_PRIORITY 1u
/* How much further than another that has something to fetch a context may be and still fetch. */
#define FETCH_LEAD_NS 10000000u

static u32 rank_of(const struct queue *q)
{
	return q->priority > ORDINARY_PRIORITY ? q->priority : ORDINARY_PRIORITY;
}

u64 share_tag(const struct context *c)
{
	return c->served_ns > c->engine->share_ns ? c->served_ns : c->engine->share_ns;
}

void share_begin(struct command *command, u64 now)
{
	command->began_ns = now;
	command->lent_ns = 0;
	command->tag = share_tag(command->context);
}

/* It was the first of the commands that could run, but not if it runs between the pieces of another. */
void share_advance(struct command *command)
{
	struct engine *e = command->queue->engine;

	if (!e->attending)
		e->share_ns = command->tag;
}

u64 share_end(struct command *command, u64 now)
{
	u64 passed = now - command->began_ns;

	passed = passed > command->lent_ns ? passed - command->lent_ns : 0;
	command->context->served_ns = share_tag(command->context) + passed;
	return passed;
}

bool share_is_due(const struct queue *q, const struct command *command, u64 now)
{
	u64 used = now - command->began_ns - command->lent_ns;

	if (q->context == command->context)
		return false;
	return rank_of(q) > rank_of(command->queue) || share_tag(q->context) <= command->tag + used;
}

bool share_precedes(const struct queue *q, const struct queue *other)
{
	u64 tag = share_tag(q->context), others = share_tag(other->context);

	if (rank_of(q) != rank_of(other))
		return rank_of(q) > rank_of(other);
	if (q->context != other->context && tag != others)
		return tag < others;
	if (q->context == other->context && q->priority != other->priority)
		return q->priority > other->priority;
	return q->turn < other->turn;
}

u64 share_least(const struct engine *e)
{
	u64 least = U64_MAX;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		const struct queue *q = e->order[i];
		bool fetches = q->tail_seen != q->sq_head && q->free && !q->stuck && !q->dying &&
			       !q->accepting && q->state != EMBENG_QUEUE_ERROR;

		if (fetches && share_tag(q->context) < least)
			least = share_tag(q->context);
	}
	return least;
}

bool share_waits(const struct context *c, u64 least)
{
	u64 tag = share_tag(c);

	return least < tag && tag - least > FETCH_LEAD_NS;
}
