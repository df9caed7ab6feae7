/* SPDX-License-Identifier: MIT */
/*
 * SNAPSHOT and SNAPSHOT_END: the beginning and the end of a snapshot of all tables and slots, which
 * is read by SNAPSHOT_READ (rows.c) while steps go on. Only the rows that change meanwhile are
 * copied (update/kept_rows.c).
 *
 * A snapshot belongs to the model, from SNAPSHOT until SNAPSHOT_END, until another one begins, until
 * a staged copy is put in place, or until there is no memory for it. Called without engine->lock by
 * the running command.
 */
#include "model.h"

static u16 refuse_snapshot(struct command *command, u16 status, u64 value, u64 limit)
{
	return fault_set(&command->fault, status, EMBENG_FIELD_ARG, EMBENG_NO_INDEX, 0, value,
			 limit);
}

static int begin_tables(struct model *model)
{
	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		if (kept_begin(model, &model->tables[t]))
			return -1;
	}
	return 0;
}

u16 snapshot_run(struct command *command)
{
	struct model *model = command->context->model;
	u16 status;

	kept_end_all(model);
	if (begin_tables(model)) {
		kept_end_all(model);
		return refuse_snapshot(command, EMBENG_STATUS_NO_MEMORY, 0, 0);
	}
	status = state_run(command);
	if (status) {
		kept_end_all(model);
		return status;
	}
	model->snapshots = model->snapshots == U32_MAX ? 1 : model->snapshots + 1;
	model->snapshot = model->snapshots;
	command->result = model->snapshot;
	return 0;
}

u16 snapshot_find(struct command *command, const struct table *table)
{
	const struct model *model = command->context->model;
	u32 number = (u32)command->cmd.arg;

	if (number && number == model->snapshot && (!table || table->kept.places))
		return 0;
	return refuse_snapshot(command, EMBENG_STATUS_SNAPSHOT, number, model->snapshot);
}

u16 snapshot_end_run(struct command *command)
{
	struct model *model = command->context->model;
	u32 tables = (u32)(command->cmd.arg >> EMBENG_SNAPSHOT_TABLES_SHIFT);
	u16 status = snapshot_find(command, NULL);

	if (status)
		return status;
	if (tables >= model->blob.engine.table_count)
		kept_end_all(model);
	for (u32 t = 0; t < tables && t < model->blob.engine.table_count; t++)
		kept_end(model, &model->tables[t]);
	return 0;
}
