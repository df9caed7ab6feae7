/* SPDX-License-Identifier: MIT */
/*
 * MODEL_LOAD with EMBENG_CMD_EXTENDS: adds tables and features to the loaded model. load.c makes a
 * second model from the longer blob, whose new tables alone have memory. Once all is there the
 * loaded tables move into it with their rows, slots, statistics and maps, and it takes the place
 * of the first. Until then nothing of the first has changed, so that a failure leaves no trace.
 *
 * The second model is command->state; after the exchange the first one is, and is freed with the
 * command. A model that is being extended keeps out the commands behind it on the same queue, and
 * once it runs those of all queues. The phases of a MODEL_LOAD that extends nothing are passed on.
 * any_load_run() is called without engine->lock, the others with it.
 */
#include "../lookup/stale.h"
#include "../step/step.h"
#include "lifetime.h"

enum verdict any_load_admit(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;

	if (!load_extends(command))
		return load_admit(command, wait);
	if (model && (model->state != MODEL_READY || model->change))
		return wait_for_nothing(wait);
	if (!model)
		return refuse_command(command, EMBENG_STATUS_NO_MODEL, EMBENG_FIELD_OPCODE, 0, 0);
	command->state = model_new(command);
	if (!command->state)
		return VERDICT_FAILED;
	model->change = command;
	return VERDICT_READY;
}

/* The loaded model may change again. */
static void end_extension(struct command *command)
{
	struct model *model = command->context->model;

	model->change = NULL;
	model->state = MODEL_READY;
}

void any_load_commit(struct command *command, u16 status)
{
	if (!load_extends(command))
		load_commit(command, status);
	else if (status)
		end_extension(command);
}

/* The step that a replica has begun and that is not applied, 0: there is none. */
static u64 find_open_step(const struct model *model)
{
	for (u32 r = 0; r < model_replicas(model); r++) {
		if (model->accepting[r].lookup || model->replicas[r].accepted > model->applied)
			return model->applied + 1;
	}
	return 0;
}

enum verdict any_load_ready(struct command *command, struct wait *wait)
{
	struct model *model = command->context->model;
	u64 step;

	(void)wait;
	if (!load_extends(command))
		return VERDICT_READY;
	step = find_open_step(model);
	if (step)
		return refuse_command(command, EMBENG_STATUS_MODEL_BUSY, EMBENG_FIELD_STEP, step,
				      model->applied);
	if (model->users)
		return refuse_command(command, EMBENG_STATUS_MODEL_BUSY, EMBENG_FIELD_OPCODE,
				      model->users, 0);
	model->state = MODEL_CHANGING;
	return VERDICT_READY;
}

static u16 refuse_staged(struct command *command, const struct model *model)
{
	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		for (u32 slot = 0; slot <= EMBENG_SLOTS_MAX; slot++) {
			if (model->tables[t].staged[slot])
				return fault_set(&command->fault, EMBENG_STATUS_STAGE,
						 EMBENG_FIELD_OPCODE, t, 0, slot, 0);
		}
	}
	return 0;
}

static u16 make_extended(struct command *command)
{
	struct model *loaded = command->context->model, *next = command->state;
	u16 status = refuse_staged(command, loaded);
	u64 bytes = 0;

	next->command = command;
	if (!status)
		status = load_make(command, next, loaded->blob.engine.table_count, &bytes);
	next->command = NULL;
	if (status && bytes)
		table_memory_give(loaded, bytes);
	if (!status)
		kept_end_all(loaded);
	return status;
}

u16 any_load_run(struct command *command)
{
	return load_extends(command) ? make_extended(command) : load_run(command);
}

static void move_memory(struct model *from, struct model *to, u64 bytes)
{
	model_count(from, -bytes);
	model_count(to, bytes);
}

/* How rows are fetched ahead goes by the size of all tables. */
static void move_table(struct model *from, struct model *to, u32 index)
{
	struct table *table = &to->tables[index];
	struct fetch_way lookup = table->lookup, update = table->update;

	*table = from->tables[index];
	table->lookup = lookup;
	table->update = update;
	memset(&from->tables[index], 0, sizeof(from->tables[index]));
	move_memory(from, to, HOT_BYTES + stale_memory(table));
}

/* As if they had been frozen since the optimizers' first step. */
static void begin_new_tables(struct model *model, u32 first)
{
	for (u32 t = first; t < model->blob.engine.table_count; t++) {
		model->tables[t].idle = model->optimizer_steps;
		model->tables[t].added = model->applied;
	}
}

static void move_model(struct model *from, struct model *to)
{
	u32 tables = from->blob.engine.table_count;

	for (u32 t = 0; t < tables; t++)
		move_table(from, to, t);
	model_number_parts(to);
	memcpy(to->replicas, from->replicas, model_replicas(from) * sizeof(*to->replicas));
	to->applied = from->applied;
	to->optimizer_steps = from->optimizer_steps;
	to->stale_step = from->stale_step;
	to->snapshots = from->snapshots;
	to->table_bytes = from->table_bytes;
	from->table_bytes = 0;
	begin_new_tables(to, tables);
}

void any_load_finish(struct command *command)
{
	struct model *loaded = command->context->model, *next = command->state;

	if (!load_extends(command)) {
		load_finish(command);
		return;
	}
	end_extension(command);
	if (command->fault.status)
		return;
	move_model(loaded, next);
	next->state = MODEL_READY;
	command->context->model = next;
	command->state = loaded;
	note_model_change(command, EMBENG_EVENT_MODEL_LOADED);
}

void any_load_release(struct command *command)
{
	struct model *model = command->state;

	if (!model)
		return;
	model_free_tables(model, model->engine->beat);
	model_free(model);
}
