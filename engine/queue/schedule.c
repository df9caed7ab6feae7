// SPDX-License-Identifier: MIT
/*
 * Chooses which queue's oldest command runs next, and runs it: the contexts' shares decide (share.c),
 * in a context priority and then how long a queue has waited. One command of a device runs at a time,
 * but between its pieces small ones of other contexts may.
 *
 * Called with engine->lock held. The lock is released while the command runs; e->busy and
 * q->running keep other threads from running another one meanwhile.
 */
#include "internal.h"

/*
 * Bytes of a command that one core has done in some 20 ms. Waking another thread for less would show
 * in the time of a step.
 */
#define SHORT_BYTES (256ull << 20)
/* Bytes of a command that is run between the pieces of another one, at most. */
#define BETWEEN_BYTES (4u << 20)

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

/* Other queues may have waited for its command, and are not blocked before they are looked at again. */
static void note_done(struct queue *q)
{
	q->context->moving = true;
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

/*
 * Whether a command changes rows that LOOKUPs read, at once and not step by step as UPDATEs do, or tells what
 * LOOKUPs have counted.
 */
static bool follows_lookups(const struct embeng_cmd *cmd)
{
	switch (cmd->opcode) {
	case EMBENG_OP_ROWS_WRITE:
		return !(cmd->flags & EMBENG_CMD_STAGED);
	case EMBENG_OP_ROWS_FILL:
		return true;
	case EMBENG_OP_STAGE:
		return cmd->arg >> EMBENG_STAGE_ACTION_SHIFT == EMBENG_STAGE_COMMIT;
	case EMBENG_OP_STATS:
		return !(cmd->arg & EMBENG_STATS_NOW);
	default:
		return false;
	}
}

/*
 * True if a LOOKUP was accepted before the command and could run now. It goes first: otherwise the threads'
 * pace would decide which rows it reads. One that waits for an update is not waited for.
 */
static bool has_lookup_before(const struct command *command)
{
	const struct engine *e = command->context->engine;
	struct wait ignored;
	u32 i;

	for (i = 0; i < e->order_count; i++) {
		const struct queue *q = e->order[i];
		struct command *lookup = q->oldest;

		if (q->context != command->context || q->dying || !lookup || !lookup->committed ||
		    lookup->cmd.opcode != EMBENG_OP_LOOKUP || !record_turn(q))
			continue;
		if (lookup->order < command->order &&
		    command_ready(lookup, &ignored) == VERDICT_READY)
			return true;
	}
	return false;
}

static void memory_error(struct queue *q, u32 counter, u32 kind)
{
	reg_count(q->engine, counter, 1);
	event_of_queue(q, kind, 0, reg_read64(q->engine, counter));
}

/* Faults that the host injects into a command. Returns true if the command fails with them. */
static bool inject_faults(struct engine *e, struct command *command)
{
	u32 number = command->queue->number;

	command->lost_data = fault_strikes(e, PORT_FAULT_ECC_UNCORRECTABLE, number);
	if (fault_strikes(e, PORT_FAULT_ECC_CORRECTABLE, number))
		memory_error(command->queue, EMBENG_REG_COUNT_ECC_CORRECTABLE,
			     EMBENG_EVENT_ECC_CORRECTABLE);
	if (command->lost_data)
		memory_error(command->queue, EMBENG_REG_COUNT_ECC_UNCORRECTABLE,
			     EMBENG_EVENT_ECC_UNCORRECTABLE);
	else if (!fault_strikes(e, PORT_FAULT_DMA_ERROR, number))
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
	if (verdict == VERDICT_READY && follows_lookups(&command->cmd) &&
	    has_lookup_before(command)) {
		q->context->moving = true;
		return false;
	}
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
	record_run(command);
	if (verdict == VERDICT_READY)
		inject_faults(q->engine, command);
	note_done(q);
	command_complete(command);
	*moved = 1;
	return false;
}

/* Whether its oldest command may run now. @between: only before the rest of that command. */
static bool may_run(const struct queue *q, const struct command *between)
{
	return !q->context->running && (!between || (share_is_due(q, between, q->engine->now_ns) &&
						     command_touched(q->oldest) <= BETWEEN_BYTES));
}

static struct queue *choose_queue(struct engine *e, const struct command *between, int *moved)
{
	struct queue *best = NULL, *q;
	u32 i;

	for (i = 0; i < e->order_count; i++)
		e->order[i]->context->moving = false;
	e->wake_ns = U64_MAX;
	for (i = 0; i < e->order_count; i++) {
		q = e->order[i];
		if (q->dying || q->running || !q->oldest || !q->oldest->committed ||
		    !record_turn(q))
			continue;
		if (look_at_oldest(q, moved) && may_run(q, between) &&
		    (!best || share_precedes(q, best)))
			best = q;
	}
	return best;
}

static void run_oldest(struct engine *e, struct queue *q, u64 *away_ns)
{
	struct command *command = q->oldest;
	bool failed, busy = e->busy;
	u32 active = reg_read32(e, EMBENG_REG_ACTIVE_QUEUE);
	u64 now, passed;

	record_run(command);
	failed = inject_faults(e, command);
	e->busy = true;
	q->running = q->context->running = true;
	q->turn = ++e->turn;
	reg_write32(e, EMBENG_REG_ACTIVE_QUEUE, q->number);
	share_begin(command, port_now_ns());
	share_advance(command);
	port_unlock(e->lock);
	if (!failed)
		model_run(command);
	now = port_now_ns();
	port_lock(e->lock);
	clock_saw(e, now);
	passed = share_end(command, now);
	busy_with(q, passed);
	if (command->cmd.opcode == EMBENG_OP_LOOKUP && !command->fault.status)
		reg_count(e, EMBENG_REG_TIME_LOOKUP, passed);
	*away_ns += passed;
	reg_write32(e, EMBENG_REG_ACTIVE_QUEUE, active);
	q->running = q->context->running = false;
	e->busy = busy;
	note_done(q);
	if (command_is_cut(command))
		queue_give_up(q, command);
	else
		command_complete(command);
}

/* Whether a thread in this mode leaves a command to others, who may have to be woken for it. */
static bool is_left(const struct engine *e, enum engine_run_mode mode,
		    const struct command *command)
{
	switch (mode) {
	case ENGINE_RUN_ACCEPT:
		return true;
	case ENGINE_RUN_SMALL:
		return command_touched(command) >= e->inline_bytes;
	case ENGINE_RUN_BETWEEN:
		return command_touched(command) > BETWEEN_BYTES;
	case ENGINE_RUN_SHORT:
		return e->served.serve && command_touched(command) >= SHORT_BYTES;
	default:
		return false;
	}
}

int execute_step(struct engine *e, enum engine_run_mode mode, u64 *away_ns)
{
	int moved = 0;
	struct queue *q = choose_queue(e, NULL, &moved);

	if (!q || e->busy)
		return moved;
	if (is_left(e, mode, q->oldest)) {
		e->left = true;
		return moved;
	}
	run_oldest(e, q, away_ns);
	return 1;
}

/* So many in a row at most, for the sake of the command that waits. */
#define BETWEEN_MOST 64u

/* Return: whether anything moved. */
static bool serve_one_between(struct engine *e, struct command *command)
{
	u64 away_ns = 0;
	int moved = accept_between(e, command);
	struct queue *q;

	clock_read(e);
	q = choose_queue(e, command, &moved);
	if (!q)
		return moved;
	run_oldest(e, q, &away_ns);
	return true;
}

/*
 * A command of another context that is small, and whose context had less than its share, does not wait
 * for the end of a long one: models share nothing. Its own pieces serve the driver alone, so this is
 * not entered again.
 */
void serve_between(struct engine *e, struct command *command)
{
	u64 began = clock_read(e), now;
	bool moved = true;
	u32 count = 0;

	while (moved && count++ < BETWEEN_MOST && !command_stops(command)) {
		moved = serve_one_between(e, command);
		now = clock_read(e);
		command->lent_ns += now - began;
		began = now;
	}
	if (count > 1)
		report_all(e, true);
}
