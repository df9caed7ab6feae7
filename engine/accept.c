// SPDX-License-Identifier: MIT
/*
 * Fetching: a command is copied, checked by opcode, admitted and accepted, in the order of
 * its queue. What it will post has its places in the completion ring from then on.
 */
#include "internal.h"

static const u16 error_registers[] = {
#define ERRORS_NONE 0
#define ERRORS_PROGRAM EMBENG_REG_COUNT_ERRORS_PROGRAM
#define ERRORS_MODEL EMBENG_REG_COUNT_ERRORS_MODEL
#define ERRORS_DEVICE EMBENG_REG_COUNT_ERRORS_DEVICE
#define ERRORS_LINK EMBENG_REG_COUNT_ERRORS_DEVICE
#define ERRORS(name, value, class, err, code, text) [value] = ERRORS_##class,
	EMBENG_STATUS_TABLE(ERRORS)
#undef ERRORS
};

/* A NOP ends as it was told to. */
static bool is_wish(const struct embeng_cmd *cmd, u16 status)
{
	return cmd->opcode == EMBENG_OP_NOP && status == (u16)cmd->arg;
}

static void count(const struct command *command)
{
	struct engine *e = command->queue->engine;
	u16 status = command->fault.status;

	reg_count(e, EMBENG_REG_COUNT_COMMANDS, 1);
	if (!status || status == EMBENG_STATUS_ABORTED)
		return;
	/* No program makes a device look faulty to others. */
	if (is_wish(&command->cmd, status)) {
		reg_count(e, EMBENG_REG_COUNT_ERRORS_PROGRAM, 1);
		return;
	}
	reg_count(e, error_registers[status], 1);
	if (error_registers[status] == EMBENG_REG_COUNT_ERRORS_DEVICE)
		event_of_queue(command->queue, EMBENG_EVENT_COMMAND_FAILED, status, command->index);
}

static void note_model(const struct command *command)
{
	u64 used = reg_read64(command->queue->engine, EMBENG_REG_TABLE_MEMORY_USED);

	if (command->fault.status)
		return;
	if (command->cmd.opcode == EMBENG_OP_MODEL_LOAD)
		event_of_context(command->context, EMBENG_EVENT_MODEL_LOADED, used);
	if (command->cmd.opcode == EMBENG_OP_MODEL_UNLOAD)
		event_of_context(command->context, EMBENG_EVENT_MODEL_UNLOADED, used);
}

static void post(struct command *command, u16 flags)
{
	const struct embeng_cmd *cmd = &command->cmd;
	const struct fault *fault = &command->fault;
	struct embeng_cqe cqe = {
		.cookie = cmd->cookie,
		.flags = flags,
		.feature = EMBENG_NO_INDEX,
		.index = command->index,
		.step = cmd->step ? cmd->step : cmd->after,
	};

	if (fault->status) {
		cqe.status = fault->status;
		cqe.field = fault->field;
		cqe.feature = fault->feature;
		cqe.element = fault->element;
		cqe.value = fault->value;
		cqe.limit = fault->limit;
	} else if (flags & EMBENG_CQE_DONE) {
		cqe.value = command->result;
	}
	ring_post(command->queue, &cqe, pace(command, flags, &cqe.timestamp));
}

/* What the model layer was never asked about, or refused, has nothing to finish there. */
static void retire(struct command *command)
{
	struct queue *q = command->queue;

	count(command);
	/* Whoever hears of it finds the command counted. */
	if (command->lost_data)
		admin_fault(q->engine);
	post(command, EMBENG_CQE_DONE);
	command->committed = false;
	queue_drop(q, command);
}

void command_complete(struct command *command)
{
	if (!command_is_ours(command)) {
		model_finish(command);
		note_model(command);
	}
	command_release(command);
	retire(command);
}

static u32 completions_of(const struct embeng_cmd *cmd)
{
	return cmd->opcode == EMBENG_OP_LOOKUP ? 2 : 1;
}

static void block(struct queue *q, u32 state, const struct wait *wait)
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

static void accept(struct queue *q, struct command *command, u64 *away_ns)
{
	struct engine *e = q->engine;
	bool ours = command_is_ours(command);
	u64 now, passed;
	u16 status;

	q->accepting = true;
	port_unlock(e->lock);
	status = ours ? command_accept(command) : model_accept(command);
	now = port_now_ns();
	passed = now - command->accepted_ns;
	port_lock(e->lock);
	clock_saw(e, now);
	busy_with(q, passed);
	if (command->cmd.opcode == EMBENG_OP_LOOKUP)
		reg_count(e, EMBENG_REG_TIME_CHECK, passed);
	*away_ns += passed;
	q->accepting = false;
	if (!ours)
		model_commit(command, status);
	else if (!status)
		status = command_commit(command);
	if (status) {
		command_release(command);
		retire(command);
		return;
	}
	command->committed = true;
	if (command->cmd.opcode == EMBENG_OP_DRAIN)
		note_tails(q->context);
	if (command->cmd.opcode == EMBENG_OP_LOOKUP)
		post(command, EMBENG_CQE_ACCEPTED);
}

static enum verdict admit(struct queue *q, struct command *command, struct wait *wait)
{
	if (command_check(q, &command->cmd, &command->fault))
		return VERDICT_FAILED;
	return command_is_ours(command) ? VERDICT_READY : model_admit(command, wait);
}

/* A fresh copy each time: what was looked at and not taken may change until it is. */
static void copy(struct queue *q, struct command *command)
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

static int take(struct queue *q, u64 *away_ns)
{
	struct wait wait = {.what = EMBENG_WAIT_NOTHING};
	struct command *command = q->free;
	enum verdict verdict;

	copy(q, command);
	if (ring_space(q) < q->accepted + completions_of(&command->cmd)) {
		wait.what = EMBENG_WAIT_SPACE;
		q->stuck = true;
		block(q, EMBENG_QUEUE_CQ_FULL, &wait);
		return 0;
	}
	verdict = admit(q, command, &wait);
	if (verdict == VERDICT_WAIT) {
		q->stuck = true;
		block(q, EMBENG_QUEUE_BLOCKED, &wait);
		return 0;
	}
	queue_take(q);
	ring_consume(q);
	if (verdict == VERDICT_FAILED)
		retire(command);
	else
		accept(q, command, away_ns);
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
	block(q, EMBENG_QUEUE_RUNNING, &nothing);
	return look == RING_COMMAND && q->free ? take(q, away_ns) : 0;
}

/* One command of each queue, so that a full queue cannot shut out the others. */
int accept_step(struct engine *e, u64 *away_ns)
{
	int moved = 0;
	u32 i;

	for (i = 0; i < e->order_count; i++)
		moved |= accept_one(e->order[i], away_ns);
	return moved;
}
