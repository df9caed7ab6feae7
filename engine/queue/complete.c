// SPDX-License-Identifier: MIT
/*
 * The end of a command: it is counted, its completion is posted, and its place in the queue is free
 * again. Fetching ends commands that were refused, running those that ran, and a queue that goes
 * away all that are left, so the end is apart from each of them.
 *
 * Called with engine->lock held. A command is not to be used after command_retire() or
 * command_complete(): its memory is the queue's next one.
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

static void count_completion(const struct command *command)
{
	struct engine *e = command->queue->engine;
	u16 status = command->fault.status;

	reg_count(e, EMBENG_REG_COUNT_COMMANDS, 1);
	queue_count_command(command);
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

void command_post(struct command *command, u16 flags)
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
	ring_post(command->queue, &cqe, timing_visible_ns(command, flags, &cqe.timestamp));
}

/* For commands that the model layer refused or never saw: it has nothing to finish for them. */
void command_retire(struct command *command)
{
	struct queue *q = command->queue;

	count_completion(command);
	/* Counted first, so that the counters include a command whose completion is seen. */
	if (command->lost_data)
		admin_fault(q->engine);
	record_done(command);
	command_post(command, EMBENG_CQE_DONE);
	command->committed = false;
	queue_drop(q, command);
}

void command_complete(struct command *command)
{
	if (!command_is_ours(command))
		model_finish(command);
	command_release(command);
	command_retire(command);
}
