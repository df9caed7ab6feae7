// SPDX-License-Identifier: MIT
/*
 * Fetches commands: each is copied out of the ring, checked by opcode, admitted and accepted, in
 * the order of its queue. From then on, places in the completion ring are reserved for all that it
 * will post.
 *
 * Called with engine->lock held. The lock is released while a command is accepted, and q->accepting
 * keeps other threads away from its queue meanwhile.
 */
#include "internal.h"

static void block_queue(struct queue *q, u32 state, const struct wait *wait)
{
	q->state = state;
	q->wait = *wait;
}

/*
 * A DRAIN covers what was submitted before it, on any queue of its context. Queues are
 * looked at one after another, so what came just before it may not have been fetched yet.
 */
static void note_tails(struct context *c)
{
	struct engine *e = c->engine;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		struct queue *q = e->order[i];

		if (q->context == c)
			q->tail_at_drain = embeng_observe_tail(&q->doorbell->sq_tail);
	}
}

static void accept_entry(struct queue *q, struct command *command, u64 *away_ns)
{
	struct engine *e = q->engine;
	u64 now, passed;
	u16 status;

	q->accepting = true;
	share_begin(command, command->accepted_ns);
	port_unlock(e->lock);
	status = command_accept(command);
	now = port_now_ns();
	port_lock(e->lock);
	clock_saw(e, now);
	passed = share_end(command, now);
	busy_with(q, passed);
	if (command->cmd.opcode == EMBENG_OP_LOOKUP)
		reg_count(e, EMBENG_REG_TIME_CHECK, passed);
	*away_ns += passed;
	q->accepting = false;
	record_command(command, status);
	if (command_commit(command, status)) {
		command_release(command);
		command_retire(command);
		return;
	}
	command->committed = true;
	command->order = ++q->context->accepted;
	if (command->cmd.opcode == EMBENG_OP_DRAIN)
		note_tails(q->context);
	if (embeng_completions(command->cmd.opcode) > 1)
		command_post(command, EMBENG_CQE_ACCEPTED);
}

static enum verdict admit_entry(struct queue *q, struct command *command, struct wait *wait)
{
	if (command_check(q, &command->cmd, &command->fault))
		return VERDICT_FAILED;
	return command_admit(command, wait);
}

/* A fresh copy each time: what was looked at and not taken may change until it is. */
static void copy_entry(struct queue *q, struct command *command)
{
	struct command *next = command->next;

	memset(command, 0, sizeof(*command));
	command->next = next;
	command->queue = q;
	command->context = q->context;
	command->accepted_ns = clock_read(q->engine);
	command->index = q->sq_head;
	ring_copy(q, &command->cmd);
}

static int take_entry(struct queue *q, u64 *away_ns)
{
	struct wait wait = { .what = EMBENG_WAIT_NOTHING };
	struct command *command = q->free;
	enum verdict verdict;

	copy_entry(q, command);
	if (ring_space(q) < q->accepted + embeng_completions(command->cmd.opcode)) {
		wait.what = EMBENG_WAIT_SPACE;
		q->stuck = true;
		block_queue(q, EMBENG_QUEUE_CQ_FULL, &wait);
		return 0;
	}
	verdict = admit_entry(q, command, &wait);
	if (verdict == VERDICT_WAIT) {
		q->stuck = true;
		block_queue(q, EMBENG_QUEUE_BLOCKED, &wait);
		return 0;
	}
	queue_take(q);
	ring_consume(q);
	if (verdict == VERDICT_FAILED) {
		record_command(command, command->fault.status);
		command_retire(command);
	} else {
		accept_entry(q, command, away_ns);
	}
	return 1;
}

static int accept_one(struct queue *q, u64 *away_ns)
{
	static const struct wait nothing;
	enum ring_look look;

	if (q->dying || q->accepting || q->state == EMBENG_QUEUE_ERROR)
		return 0;
	look = ring_look(q);
	if (look == RING_STOPPED) {
		reg_count(q->engine, EMBENG_REG_COUNT_ERRORS_PROGRAM, 1);
		q->wait = nothing;
		return 1;
	}
	q->stuck = false;
	block_queue(q, EMBENG_QUEUE_RUNNING, &nothing);
	return look == RING_COMMAND && q->free ? take_entry(q, away_ns) : 0;
}

/*
 * One command of each queue, so that a full queue cannot shut out the others.
 * @least: only of contexts that are not far ahead of this tag, U64_MAX: of all
 * @between: only of queues that come before the rest of that command, NULL: of all
 */
static int accept_queues(struct engine *e, u64 least, const struct command *between, u64 *away_ns)
{
	int moved = 0;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		struct queue *q = e->order[i];

		if (least != U64_MAX && share_waits(q->context, least))
			continue;
		if (!between || share_is_due(q, between, clock_read(e)))
			moved |= accept_one(q, away_ns);
	}
	return moved;
}

/* Nobody waits for a context whose commands cannot be taken. */
int accept_step(struct engine *e, u64 *away_ns)
{
	u64 least = e->context_count > 1 ? share_least(e) : U64_MAX;
	int moved = accept_queues(e, least, NULL, away_ns);

	if (moved || least == U64_MAX)
		return moved;
	return accept_queues(e, U64_MAX, NULL, away_ns);
}

int accept_between(struct engine *e, const struct command *command)
{
	u64 away_ns = 0;

	return accept_queues(e, U64_MAX, command, &away_ns);
}
