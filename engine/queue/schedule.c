// SPDX-License-Identifier: MIT
/*
 * Chooses which queue's oldest command runs next, by priority and then by how long it has waited,
 * and runs it. Only one command of a device runs at a time.
 *
 * Called with engine->lock held. The lock is released while the command runs; e->busy and
 * q->running keep other threads from running another one meanwhile.
 */
#include "internal.h"

static void note_blocked(struct queue *q, const struct wait *wait)
{
	if (q->state == EMBENG_QUEUE_CQ_FULL || q->state == EMBENG_QUEUE_ERROR)
		return;
	q->state = EMBENG_QUEUE_BLOCKED;
	q->wait = *wait;
}

/* Time alone ends this wait: the queue is not blocked on its program. */
static void note_delayed(struct queue *q, const struct command *command)
{
	q->context->moving = true;
	if (command->ready_ns < q->engine->wake_ns)
		q->engine->wake_ns = command->ready_ns;
}

/* True if every command that was submitted before the DRAIN and can be fetched has been. */
static bool is_fetched(const struct context *c)
{
	const struct engine *e = c->engine;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		const struct queue *q = e->order[i];

		if (q->context != c || q->dying || q->stuck || !q->free ||
		    q->state == EMBENG_QUEUE_ERROR)
			continue;
		if (q->accepting || (s32)(q->tail_at_drain - q->sq_head) > 0)
			return false;
	}
	return true;
}

static void memory_error(struct queue *q, u32 counter, u32 kind)
{
	reg_count(q->engine, counter, 1);
	event_of_queue(q, kind, 0, reg_read64(q->engine, counter));
}

/* Faults that the host injects into a command. Returns true if the command fails with them. */
static bool inject_faults(struct engine *e, struct command *command)
{
	void *host = e->config.host;
	u32 number = command->queue->number;

	command->lost_data = port_fault(host, PORT_FAULT_ECC_UNCORRECTABLE, number);
	if (port_fault(host, PORT_FAULT_ECC_CORRECTABLE, number))
		memory_error(command->queue, EMBENG_REG_COUNT_ECC_CORRECTABLE,
			     EMBENG_EVENT_ECC_CORRECTABLE);
	if (command->lost_data)
		memory_error(command->queue, EMBENG_REG_COUNT_ECC_UNCORRECTABLE,
			     EMBENG_EVENT_ECC_UNCORRECTABLE);
	else if (!port_fault(host, PORT_FAULT_DMA_ERROR, number))
		return false;
	fault_set(&command->fault, EMBENG_STATUS_INTERNAL, EMBENG_FIELD_NONE, EMBENG_NO_INDEX, 0, 0,
		  0);
	return true;
}

/* Looks at a queue's oldest command; true when the model layer can run it. */
static bool look_at_oldest(struct queue *q, int *moved)
{
	struct wait wait = { .what = EMBENG_WAIT_NOTHING };
	struct command *command = q->oldest;
	bool ours = command_is_ours(command);
	enum verdict verdict;

	if (command->cmd.opcode == EMBENG_OP_DRAIN && !is_fetched(q->context)) {
		q->context->moving = true;
		return false;
	}
	verdict = command_ready(command, &wait);
	if (verdict == VERDICT_WAIT) {
		if (command->cmd.opcode == EMBENG_OP_NOP)
			note_delayed(q, command);
		else
			note_blocked(q, &wait);
		return false;
	}
	if (verdict == VERDICT_READY && !ours) {
		q->context->moving = true;
		return true;
	}
	if (verdict == VERDICT_READY)
		inject_faults(q->engine, command);
	command_complete(command);
	*moved = 1;
	return false;
}

/* Priority first, then whoever has waited longest. The order is by priority already. */
static bool goes_before(const struct queue *q, const struct queue *best)
{
	return !best || (q->priority == best->priority && q->turn < best->turn);
}

static struct queue *choose_queue(struct engine *e, int *moved)
{
	struct queue *best = NULL, *q;
	u32 i;

	for (i = 0; i < e->order_count; i++)
		e->order[i]->context->moving = false;
	e->wake_ns = U64_MAX;
	for (i = 0; i < e->order_count; i++) {
		q = e->order[i];
		if (q->dying || q->running || !q->oldest || !q->oldest->committed)
			continue;
		if (look_at_oldest(q, moved) && goes_before(q, best))
			best = q;
	}
	return best;
}

static void run_oldest(struct engine *e, struct queue *q, u64 *away_ns)
{
	struct command *command = q->oldest;
	bool failed = inject_faults(e, command);
	u64 began, now, passed;

	e->busy = true;
	q->running = true;
	q->turn = ++e->turn;
	reg_write32(e, EMBENG_REG_ACTIVE_QUEUE, q->number);
	port_unlock(e->lock);
	began = port_now_ns();
	if (!failed)
		model_run(command);
	now = port_now_ns();
	passed = now - began;
	port_lock(e->lock);
	clock_saw(e, now);
	busy_with(q, passed);
	if (command->cmd.opcode == EMBENG_OP_LOOKUP && !command->fault.status)
		reg_count(e, EMBENG_REG_TIME_LOOKUP, passed);
	*away_ns += passed;
	reg_write32(e, EMBENG_REG_ACTIVE_QUEUE, 0);
	q->running = false;
	e->busy = false;
	if (command_is_cut(command))
		queue_give_up(q, command);
	else
		command_complete(command);
}

int execute_step(struct engine *e, enum engine_run_mode mode, u64 *away_ns)
{
	int moved = 0;
	struct queue *q = choose_queue(e, &moved);

	if (!q || e->busy || mode == ENGINE_RUN_ACCEPT ||
	    (mode == ENGINE_RUN_SMALL && !model_is_small(q->oldest)))
		return moved;
	run_oldest(e, q, away_ns);
	return 1;
}
