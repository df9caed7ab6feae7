/* SPDX-License-Identifier: MIT */
/*
 * The line between the queues and the model: for each phase in the life of a command, the function
 * of its opcode is called. The phases and the locks of each are described in device/device.h.
 *
 * model_accept() and model_run() are called without engine->lock, all others with it. A model
 * belongs to its context and lives from an admitted MODEL_LOAD to model_destroy().
 */
#include "../partition/partition.h"
#include "../step/step.h"
#include "../update/update.h"

static enum verdict fail(struct command *command, u16 status, u32 field, u64 value, u64 limit)
{
	fault_set(&command->fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
	return VERDICT_FAILED;
}

static enum verdict wait_nothing(struct wait *wait)
{
	*wait = (struct wait){ .what = EMBENG_WAIT_NOTHING };
	return VERDICT_WAIT;
}

static enum verdict admit_load(struct command *command, struct wait *wait)
{
	struct context *context = command->context;
	struct model *model = context->model;

	if (model && (model->state != MODEL_READY || model->unload))
		return wait_nothing(wait);
	if (model)
		return fail(command, EMBENG_STATUS_MODEL_BUSY, EMBENG_FIELD_OPCODE, 0, 0);
	model = port_alloc(sizeof(*model));
	if (!model)
		return fail(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_OPCODE, sizeof(*model),
			    0);
	model->engine = context->engine;
	model->context = context;
	model->state = MODEL_LOADING;
	model_count(model, sizeof(*model));
	context->model = model;
	return VERDICT_READY;
}

static struct batch *take_spare(struct model *model)
{
	struct batch *batch = model->spare;

	if (batch)
		model->spare = batch->next;
	else
		batch = batch_new(model);
	return batch;
}

static enum verdict admit_lookup(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;

	if (command->queue->kind == EMBENG_QUEUE_INPUT) {
		if (!model->trains)
			return fail(command, EMBENG_STATUS_TRAINING, EMBENG_FIELD_TABLE, 0, 0);
		return step_admit_lookup(command, wait);
	}
	command->state = take_spare(model);
	if (!command->state)
		return fail(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_OPCODE, 0, 0);
	return VERDICT_READY;
}

static enum verdict admit_verb(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;

	if (command->queue->kind != EMBENG_QUEUE_TRANSFER &&
	    command->queue->replica >= model_replicas(model))
		return fail(command, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_OPCODE,
			    command->queue->replica, model_replicas(model) - 1);
	if (command->cmd.opcode == EMBENG_OP_LOOKUP)
		return admit_lookup(command, wait);
	if (command->cmd.opcode == EMBENG_OP_UPDATE)
		return step_admit_update(command, wait);
	if (command->cmd.opcode == EMBENG_OP_MODEL_UNLOAD) {
		model->unload = command;
		return VERDICT_READY;
	}
	return VERDICT_READY;
}

enum verdict model_admit(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	enum verdict verdict;

	if (command->cmd.opcode == EMBENG_OP_PARTITION)
		return VERDICT_READY;
	if (command->cmd.opcode == EMBENG_OP_MODEL_LOAD)
		return admit_load(command, wait);
	if (!model)
		return fail(command, EMBENG_STATUS_NO_MODEL, EMBENG_FIELD_OPCODE, 0, 0);
	/* Behind an unload, a command sees no model; it must not be what that waits for. */
	if (model->state != MODEL_READY ||
	    (model->unload && (model->unload->queue == command->queue ||
			       command->cmd.opcode == EMBENG_OP_MODEL_UNLOAD)))
		return wait_nothing(wait);
	verdict = admit_verb(command, wait);
	if (verdict == VERDICT_READY && command->cmd.opcode != EMBENG_OP_MODEL_UNLOAD) {
		command->holds_model = true;
		model->users++;
	}
	return verdict;
}

/* The batch of a LOOKUP or UPDATE; an inference has one of its own. */
static struct batch *batch_of(const struct command *command)
{
	const struct queue *q = command->queue;

	if (q->kind == EMBENG_QUEUE_INFERENCE)
		return command->state;
	return model_part(command->context->model, command->cmd.step, q->replica)->batch;
}

bool model_is_small(const struct command *command)
{
	const struct engine *e = command->context->engine;

	switch (command->cmd.opcode) {
	case EMBENG_OP_LOOKUP:
		return batch_of(command)->bytes < e->inline_bytes;
	case EMBENG_OP_UPDATE: /* the last one of a step applies those of all replicas */
		return model_replicas(command->context->model) == 1 &&
		       batch_of(command)->bytes < e->inline_bytes;
	default:
		return false;
	}
}

static u16 accept_lookup(struct command *command)
{
	bool training = command->queue->kind == EMBENG_QUEUE_INPUT;

	return batch_accept(command, batch_of(command), training);
}

u16 model_accept(struct command *command)
{
	switch (command->cmd.opcode) {
	case EMBENG_OP_MODEL_LOAD:
		return load_accept(command);
	case EMBENG_OP_LOOKUP:
		return accept_lookup(command);
	case EMBENG_OP_UPDATE:
		return update_accept(command);
	case EMBENG_OP_PARTITION:
		return pcsr_accept(command);
	case EMBENG_OP_ROWS_WRITE:
	case EMBENG_OP_ROWS_READ:
	case EMBENG_OP_ROWS_FILL:
		return rows_accept(command);
	case EMBENG_OP_STAGE:
		return stage_accept(command);
	case EMBENG_OP_STATS:
		return stats_accept(command);
	case EMBENG_OP_STATE_READ:
	case EMBENG_OP_STATE_WRITE:
		return state_accept(command);
	}
	return 0;
}

void model_commit(struct command *command, u16 status)
{
	struct model *model = command->context->model;

	if (command->cmd.opcode == EMBENG_OP_UPDATE)
		step_commit_update(command, status);
	if (command->cmd.opcode == EMBENG_OP_MODEL_UNLOAD && status)
		model->unload = NULL;
	if (command->cmd.opcode == EMBENG_OP_MODEL_LOAD && status)
		model_destroy(command->context);
	if (command->cmd.opcode != EMBENG_OP_LOOKUP)
		return;
	if (command->queue->kind == EMBENG_QUEUE_INPUT)
		step_commit_lookup(command, status);
	else if (!status)
		step_count_batch(model, command->state);
}

static enum verdict unload_ready(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	enum verdict verdict = step_after_ready(command, wait);

	if (verdict != VERDICT_READY)
		return verdict;
	if (model->users) {
		step_missing(model, wait);
		return VERDICT_WAIT;
	}
	model->state = MODEL_UNLOADING;
	return VERDICT_READY;
}

enum verdict model_ready(struct command *command, struct wait *wait)
{
	switch (command->cmd.opcode) {
	case EMBENG_OP_MODEL_LOAD:
	case EMBENG_OP_PARTITION:
		return VERDICT_READY;
	case EMBENG_OP_MODEL_UNLOAD:
		return unload_ready(command, wait);
	case EMBENG_OP_UPDATE:
		return step_update_ready(command, wait);
	case EMBENG_OP_DRAIN:
		return step_drain_ready(command, wait);
	case EMBENG_OP_LOOKUP:
		if (command->queue->kind == EMBENG_QUEUE_INPUT)
			return step_lookup_ready(command, wait);
	}
	return step_after_ready(command, wait);
}

static u16 drain_run(struct command *command)
{
	struct model *model = command->context->model;
	u64 last = command->cmd.step;
	u16 status = 0;

	port_lock(model->engine->lock);
	last = step_complete(model, last);
	port_unlock(model->engine->lock);
	while (!status && model->applied < last)
		status = update_apply(command, model->applied + 1);
	return status;
}

static void run_lookup(struct command *command)
{
	struct batch *batch = command->state;

	if (command->queue->kind == EMBENG_QUEUE_INPUT)
		batch = model_part(command->context->model, command->cmd.step,
				   command->queue->replica)->batch;
	lookup_run(command, batch);
}

void model_run(struct command *command)
{
	switch (command->cmd.opcode) {
	case EMBENG_OP_MODEL_LOAD:
		load_run(command);
		break;
	case EMBENG_OP_MODEL_UNLOAD:
		model_free_tables(command->context->model);
		break;
	case EMBENG_OP_LOOKUP:
		run_lookup(command);
		break;
	case EMBENG_OP_UPDATE:
		if (!step_update_applied(command))
			update_apply(command, command->cmd.step);
		break;
	case EMBENG_OP_PARTITION:
		pcsr_run(command);
		break;
	case EMBENG_OP_DRAIN:
		drain_run(command);
		break;
	case EMBENG_OP_ROWS_WRITE:
	case EMBENG_OP_ROWS_READ:
	case EMBENG_OP_ROWS_FILL:
		rows_run(command);
		break;
	case EMBENG_OP_STAGE:
		stage_run(command);
		break;
	case EMBENG_OP_STATS:
		stats_run(command);
		break;
	case EMBENG_OP_STATE_READ:
	case EMBENG_OP_STATE_WRITE:
		state_run(command);
		break;
	}
}

void model_finish(struct command *command)
{
	struct model *model = command->context->model;
	bool failed = command->fault.status;

	switch (command->cmd.opcode) {
	case EMBENG_OP_MODEL_LOAD:
		if (failed)
			model_destroy(command->context);
		else
			model->state = MODEL_READY;
		break;
	case EMBENG_OP_MODEL_UNLOAD:
		model->unload = NULL;
		if (failed)
			model->state = MODEL_READY;
		else
			model_destroy(command->context);
		break;
	case EMBENG_OP_LOOKUP:
		if (command->queue->kind == EMBENG_QUEUE_INPUT)
			step_lookup_finished(command);
		break;
	case EMBENG_OP_UPDATE:
		step_update_finished(command);
		break;
	}
}

void model_release(struct command *command)
{
	struct model *model = command->context->model;

	if (command->holds_model) {
		command->holds_model = false;
		model->users--;
	}
	switch (command->cmd.opcode) {
	case EMBENG_OP_LOOKUP:
		if (command->state) {
			((struct batch *)command->state)->next = model->spare;
			model->spare = command->state;
		}
		break;
	case EMBENG_OP_ROWS_WRITE:
	case EMBENG_OP_ROWS_READ:
	case EMBENG_OP_ROWS_FILL:
		rows_release(command);
		break;
	case EMBENG_OP_PARTITION:
		port_free(command->state);
		break;
	}
	command->state = NULL;
}

void model_destroy(struct context *context)
{
	struct model *model = context->model;

	if (!model)
		return;
	context->model = NULL;
	table_memory_change(model, -model->table_bytes);
	model_free_tables(model);
	model_free(model);
}
