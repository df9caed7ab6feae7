/* SPDX-License-Identifier: MIT */
/*
 * Staged copies of tables and slots. A restore writes rows into the copies, and a commit swaps all
 * of them in at once, so that a restore that fails changes nothing.
 *
 * A staged copy belongs to its table, from BEGIN to COMMIT or DROP or until the tables are freed.
 * Called without engine->lock by the running command; only the account of table memory takes the
 * lock.
 */
#include "../lookup/stale.h"

#define ARRAYS (1 + EMBENG_SLOTS_MAX)

static u32 action_of(const struct command *command)
{
	return (u32)(command->cmd.arg >> EMBENG_STAGE_ACTION_SHIFT);
}

static u32 slot_of(const struct command *command)
{
	return (u16)(command->cmd.arg >> EMBENG_STAGE_SLOT_SHIFT);
}

static u16 refuse_stage(struct command *command, u16 status, u32 field, u64 value, u64 limit)
{
	u32 table = (u32)command->cmd.arg;

	return fault_set(&command->fault, status, field, table, 0, value, limit);
}

u16 stage_accept(struct command *command)
{
	const struct model *model = command->context->model;
	u32 table = (u32)command->cmd.arg, slot = slot_of(command), action = action_of(command);

	if (action > EMBENG_STAGE_DROP)
		return refuse_stage(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG, action,
				    EMBENG_STAGE_DROP);
	if (action != EMBENG_STAGE_BEGIN && (table || slot))
		return refuse_stage(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG,
				    command->cmd.arg, 0);
	if (table >= model->blob.engine.table_count)
		return action == EMBENG_STAGE_BEGIN ?
			       refuse_stage(command, EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE, table,
					    model->blob.engine.table_count) :
			       0;
	if (slot > model->tables[table].record.slot_count)
		return refuse_stage(command, EMBENG_STATUS_SLOT, EMBENG_FIELD_SLOT, slot,
				    model->tables[table].record.slot_count);
	return 0;
}

static u16 begin_stage(struct command *command)
{
	struct model *model = command->context->model;
	struct table *table = &model->tables[(u32)command->cmd.arg];
	u32 **staged = &table->staged[slot_of(command)];
	u64 bytes = table_array_bytes(table, slot_of(command));
	u16 status;

	if (*staged)
		return refuse_stage(command, EMBENG_STATUS_STAGE, EMBENG_FIELD_SLOT,
				    slot_of(command), 0);
	status = table_memory_take(command, bytes, EMBENG_FIELD_TABLE);
	if (status)
		return status;
	*staged = alloc_table(model->engine, bytes);
	if (*staged)
		return 0;
	table_memory_give(model, bytes);
	return refuse_stage(command, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_TABLE, bytes, 0);
}

static void release_staged(struct model *model, struct table *table, u32 slot)
{
	u64 bytes = table_array_bytes(table, slot);

	port_free_table(table->staged[slot], bytes);
	table->staged[slot] = NULL;
	table_memory_give(model, bytes);
}

/* Half of a commit would leave tables of two checkpoints: only the end of the context stops it. */
static void put_in_place(struct command *command, struct table *table, u32 slot)
{
	u32 **array = table_array(table, slot), **fresh = &table->staged[slot], *old = *array;

	if (table->mapped) {
		command->finishes = true;
		piece_copy(command, old, *fresh, table_array_bytes(table, slot));
		command->finishes = false;
		return;
	}
	*array = *fresh;
	*fresh = old;
}

static void commit_staged(struct model *model)
{
	kept_end_all(model);
	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		struct table *table = &model->tables[t];

		for (u32 slot = 0; slot < ARRAYS; slot++) {
			if (!table->staged[slot])
				continue;
			put_in_place(model->command, table, slot);
			release_staged(model, table, slot);
		}
	}
}

static void drop_staged(struct model *model)
{
	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		for (u32 slot = 0; slot < ARRAYS; slot++) {
			if (model->tables[t].staged[slot])
				release_staged(model, &model->tables[t], slot);
		}
	}
}

u16 stage_run(struct command *command)
{
	struct model *model = command->context->model;

	switch (action_of(command)) {
	case EMBENG_STAGE_BEGIN:
		return begin_stage(command);
	case EMBENG_STAGE_COMMIT:
		stale_forget(model);
		commit_staged(model);
		break;
	case EMBENG_STAGE_DROP:
		drop_staged(model);
		break;
	}
	return 0;
}
