/* SPDX-License-Identifier: MIT */
/*
 * FREEZE: has updates leave a table alone, or change it again, from the step after the command's on.
 * The switch is here; update/apply_table.c asks it.
 *
 * Called without engine->lock by the running command. The switch is read by running commands alone,
 * so it needs no lock.
 */
#include "model.h"

static u32 freeze_action(const struct command *command)
{
	return (u32)(command->cmd.arg >> EMBENG_FREEZE_ACTION_SHIFT);
}

static u16 refuse_freeze(struct command *command, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(&command->fault, status, field, (u32)command->cmd.arg, 0, value, limit);
}

u16 freeze_accept(struct command *command)
{
	const struct model *model = command->context->model;
	u32 table = (u32)command->cmd.arg, action = freeze_action(command);

	if (action > EMBENG_FREEZE_ASK)
		return refuse_freeze(command, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG, action,
				     EMBENG_FREEZE_ASK);
	if (table >= model->blob.engine.table_count)
		return refuse_freeze(command, EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE, table,
				     model->blob.engine.table_count);
	if (action == EMBENG_FREEZE_OFF && model->tables[table].kernel == U32_MAX)
		return refuse_freeze(command, EMBENG_STATUS_TRAINING, EMBENG_FIELD_TABLE, table, 0);
	return 0;
}

u16 freeze_run(struct command *command)
{
	struct model *model = command->context->model;
	struct table *table = &model->tables[(u32)command->cmd.arg];

	command->result = !table_trains(table);
	if (freeze_action(command) != EMBENG_FREEZE_ASK && table->kernel != U32_MAX)
		table->frozen = freeze_action(command) == EMBENG_FREEZE_ON;
	return 0;
}
