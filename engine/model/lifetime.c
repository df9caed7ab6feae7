/* SPDX-License-Identifier: MIT */
/*
 * How a context gets its model and loses it: what MODEL_LOAD and MODEL_UNLOAD do beside the work of
 * load.c, which fills a model with memory. An unload waits until no other command uses the model,
 * and commands that come meanwhile wait until it is gone. A load that extends the model is in
 * extend.c.
 *
 * A model belongs to its context and lives from an admitted MODEL_LOAD to model_destroy(). All
 * functions but unload_run() are called with engine->lock held.
 */
#include "../step/step.h"
#include "lifetime.h"

void note_model_change(const struct command *command, u32 event)
{
	struct context *context = command->context;

	event_of_context(context, event, reg_read64(context->engine, EMBENG_REG_TABLE_MEMORY_USED));
}

struct model *model_new(struct command *command)
{
	struct context *context = command->context;
	struct model *model = port_alloc(sizeof(*model));

	if (!model) {
		refuse_command(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_OPCODE,
			       sizeof(*model), 0);
		return NULL;
	}
	model->engine = context->engine;
	model->context = context;
	model->state = MODEL_LOADING;
	model_count(model, sizeof(*model));
	return model;
}

enum verdict load_admit(struct command *command, struct wait *wait)
{
	struct context *context = command->context;
	struct model *model = context->model;

	if (model && (model->state != MODEL_READY || model->change))
		return wait_for_nothing(wait);
	if (model)
		return refuse_command(command, EMBENG_STATUS_MODEL_BUSY, EMBENG_FIELD_OPCODE, 0, 0);
	context->model = model_new(command);
	return context->model ? VERDICT_READY : VERDICT_FAILED;
}

void load_commit(struct command *command, u16 status)
{
	if (status)
		model_destroy(command->context);
}

void load_finish(struct command *command)
{
	if (command->fault.status) {
		model_destroy(command->context);
		return;
	}
	command->context->model->state = MODEL_READY;
	note_model_change(command, EMBENG_EVENT_MODEL_LOADED);
}

enum verdict unload_admit(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;

	if (!model)
		return refuse_command(command, EMBENG_STATUS_NO_MODEL, EMBENG_FIELD_OPCODE, 0, 0);
	if (model->state != MODEL_READY || model->change)
		return wait_for_nothing(wait);
	model->change = command;
	return VERDICT_READY;
}

enum verdict unload_ready(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	enum verdict verdict = step_after_ready(command, wait);

	if (verdict != VERDICT_READY)
		return verdict;
	if (model->users)
		return step_missing(model, wait);
	model->state = MODEL_CHANGING;
	return VERDICT_READY;
}

u16 unload_run(struct command *command)
{
	model_free_tables(command->context->model, piece_beat);
	return 0;
}

void unload_finish(struct command *command)
{
	struct model *model = command->context->model;

	model->change = NULL;
	if (command->fault.status) {
		model->state = MODEL_READY;
		return;
	}
	model_destroy(command->context);
	note_model_change(command, EMBENG_EVENT_MODEL_UNLOADED);
}

void model_destroy(struct context *context)
{
	struct model *model = context->model;

	if (!model)
		return;
	context->model = NULL;
	table_memory_change(model, -model->table_bytes);
	model_free_tables(model, model->engine->beat);
	model_free(model);
}
