/* SPDX-License-Identifier: MIT */
/*
 * STATS, STATE_READ and STATE_WRITE: the statistics of a table, and the number of optimizer steps.
 * The sums are made elsewhere as steps go by; here they are completed, reported and cleared.
 *
 * Called without engine->lock by the running command. The lock is taken for the counts of ids that
 * were dropped, clamped or set to zero, and of rows and activations that are not finite, because
 * several threads add to them.
 */
#include "../lookup/stale.h"
#include "../step/step.h"
#include "../update/lane.h"
#include "../update/update.h"

/* Steps that all replicas looked up, but whose update has not come yet. */
static u16 count_looked(struct command *command, struct table *table)
{
	struct model *model = command->context->model;
	struct lane *lane = &model->lanes[0];
	struct embeng_steps steps;
	u64 looked;

	port_lock(model->engine->lock);
	steps = model_steps(model);
	looked = embeng_steps_looked(&steps);
	port_unlock(model->engine->lock);
	for (u64 n = model->applied + 1; n <= looked; n++) {
		if (table->counted >= n)
			continue;
		if (update_partition(lane, n, table->index, model->engine->caps.cores))
			return command_is_cut(command) ?
				       abort_command(command) :
				       fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY,
						 EMBENG_FIELD_TABLE, table->index, 0, 0, 0);
		/* A step is counted once, and whole. */
		command->finishes = true;
		stats_count(model, table, &lane->partition, n);
		command->finishes = false;
		lanes_account(model, lane->partition_ns);
	}
	return 0;
}

/* @policies: the counts to which threads add under the lock. */
static void report_table(const struct table *table, const struct table_stats *policies, u32 cores,
			 struct embeng_stats *out)
{
	const struct table_stats *stats = &table->stats;

	memset(out, 0, sizeof(*out));
	out->table = table->index;
	out->core_count = cores < EMBENG_STATS_CORES ? cores : EMBENG_STATS_CORES;
	out->ids = stats->ids;
	out->unique_ids = stats->unique_ids;
	out->dropped_ids = policies->dropped;
	out->clamped_ids = policies->clamped;
	out->zeroed_ids = policies->zeroed;
	out->nonfinite_activations = policies->nonfinite_activations;
	out->nonfinite_rows = policies->nonfinite_rows;
	out->steps = stats->steps;
	out->updated_rows = stats->updated_rows;
	out->untouched_rows = stats->untouched_rows;
	out->nonfinite_gradient_rows = stats->nonfinite_gradient_rows;
	out->hot_count = hot_top(&stats->hot, out->hot, EMBENG_STATS_HOT);
	out->hot_error = stats->hot.error;
	memcpy(out->core_ids, stats->core_ids, sizeof(out->core_ids));
}

/* Only what was reported: counts that came meanwhile stay. */
static void clear_reported(struct model *model, struct table *table,
			   const struct table_stats *policies)
{
	struct table_stats *stats = &table->stats;

	stats->ids = stats->unique_ids = stats->steps = 0;
	stats->updated_rows = stats->untouched_rows = stats->nonfinite_gradient_rows = 0;
	memset(stats->core_ids, 0, sizeof(stats->core_ids));
	hot_clear(&stats->hot);
	port_lock(model->engine->lock);
	stats->dropped -= policies->dropped;
	stats->clamped -= policies->clamped;
	stats->zeroed -= policies->zeroed;
	stats->nonfinite_activations -= policies->nonfinite_activations;
	stats->nonfinite_rows -= policies->nonfinite_rows;
	port_unlock(model->engine->lock);
}

bool stats_is_now(const struct command *command)
{
	return command->cmd.arg & EMBENG_STATS_NOW;
}

static u16 check_stats_arg(struct command *command)
{
	const struct model *model = command->context->model;
	u32 table = (u32)command->cmd.arg;
	u64 known = 0xffffffffull | EMBENG_STATS_CLEAR;

	if (command->context->engine->caps.features & EMBENG_CAP_STATS_NOW)
		known |= EMBENG_STATS_NOW;
	if (command->cmd.arg & ~known)
		return fault_set(&command->fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_ARG,
				 EMBENG_NO_INDEX, 0, command->cmd.arg, known);
	if (!stats_is_now(command) && table >= model->blob.engine.table_count)
		return fault_set(&command->fault, EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE, table, 0,
				 table, model->blob.engine.table_count);
	return 0;
}

u16 stats_accept(struct command *command)
{
	u16 status = check_stats_arg(command);
	struct view view;

	if (!status)
		status = desc_get(command, sizeof(struct embeng_stats), EMBENG_REGION_DEVICE_WRITE,
				  &view);
	if (!status)
		region_put(command->context, &view);
	return status;
}

/* No update runs beside it, because commands of one context run one after the other. */
enum verdict stats_ready(struct command *command, struct wait *wait)
{
	return stats_is_now(command) ? VERDICT_READY : step_after_ready(command, wait);
}

u64 stats_touched(const struct command *command)
{
	return stats_is_now(command) ? sizeof(struct embeng_stats) : U64_MAX;
}

/* @table: NULL: there is none with that index. */
static u16 write_report(struct command *command, const struct table *table,
			struct table_stats *policies)
{
	struct engine *engine = command->context->engine;
	struct view view;
	u16 status = desc_get(command, sizeof(struct embeng_stats), EMBENG_REGION_DEVICE_WRITE,
			      &view);

	if (status)
		return status;
	if (table) {
		port_lock(engine->lock);
		policies->dropped = table->stats.dropped;
		policies->clamped = table->stats.clamped;
		policies->zeroed = table->stats.zeroed;
		policies->nonfinite_activations = table->stats.nonfinite_activations;
		policies->nonfinite_rows = table->stats.nonfinite_rows;
		port_unlock(engine->lock);
		report_table(table, policies, engine->caps.cores, view.data);
	} else {
		memset(view.data, 0, sizeof(struct embeng_stats));
		((struct embeng_stats *)view.data)->table = (u32)command->cmd.arg;
	}
	region_put(command->context, &view);
	return 0;
}

/* A model that was loaded since the command was admitted is not asked: it might go meanwhile. */
static u16 run_now(struct command *command)
{
	struct model *model = command->holds_model ? command->context->model : NULL;
	u32 index = (u32)command->cmd.arg, count = model ? model->blob.engine.table_count : 0;
	struct table_stats policies = { 0 };

	command->result = count;
	return write_report(command, index < count ? &model->tables[index] : NULL, &policies);
}

u16 stats_run(struct command *command)
{
	struct model *model = command->context->model;
	struct table_stats policies = { 0 };
	struct table *table;
	u16 status;

	if (stats_is_now(command))
		return run_now(command);
	table = &model->tables[(u32)command->cmd.arg];
	status = count_looked(command, table);
	if (!status)
		status = write_report(command, table, &policies);
	if (status)
		return status;
	if (command->cmd.arg & EMBENG_STATS_CLEAR)
		clear_reported(model, table, &policies);
	command->result = sizeof(struct embeng_stats);
	return 0;
}

static u16 state_get(struct command *command, struct view *view)
{
	u32 rights = command->cmd.opcode != EMBENG_OP_STATE_WRITE ? EMBENG_REGION_DEVICE_WRITE :
								    EMBENG_REGION_DEVICE_READ;

	if (command->cmd.desc.length != sizeof(u64))
		return fault_set(&command->fault, EMBENG_STATUS_LENGTH, EMBENG_FIELD_DESC,
				 EMBENG_NO_INDEX, 0, command->cmd.desc.length, sizeof(u64));
	return desc_get(command, sizeof(u64), rights, view);
}

u16 state_accept(struct command *command)
{
	const struct model *model = command->context->model;
	u64 tables = model->blob.engine.table_count;
	struct view view;
	u16 status;

	if (command->cmd.arg > tables)
		return fault_set(&command->fault, EMBENG_STATUS_TABLE, EMBENG_FIELD_TABLE,
				 EMBENG_NO_INDEX, 0, command->cmd.arg - 1, tables);
	status = state_get(command, &view);

	if (!status)
		region_put(command->context, &view);
	return status;
}

/* The table whose step count the command is about; NULL: the model's. */
static struct table *state_table(const struct command *command)
{
	struct model *model = command->context->model;

	return command->cmd.arg ? &model->tables[command->cmd.arg - 1] : NULL;
}

static void set_model_steps(struct model *model, u64 count)
{
	model->optimizer_steps = count;
	for (u32 t = 0; t < model->blob.engine.table_count; t++)
		model->tables[t].idle = 0;
}

static u16 state_set(struct command *command, const void *data)
{
	struct model *model = command->context->model;
	struct table *table = state_table(command);
	u64 count, limit = table ? model->optimizer_steps : EMBENG_STEP_COUNT_MAX;

	memcpy(&count, data, sizeof(count));
	if (count > limit)
		return fault_set(&command->fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_DATA,
				 (u32)command->cmd.arg - 1, 0, count, limit);
	stale_forget(model);
	if (!table)
		set_model_steps(model, count);
	else
		table->idle = model->optimizer_steps - count;
	return 0;
}

u16 state_run(struct command *command)
{
	const struct model *model = command->context->model;
	const struct table *table = state_table(command);
	u64 count = model->optimizer_steps - (table ? table->idle : 0);
	struct view view;
	u16 status = state_get(command, &view);

	if (status)
		return status;
	/* A snapshot tells the count, too. */
	if (command->cmd.opcode != EMBENG_OP_STATE_WRITE)
		memcpy(view.data, &count, sizeof(u64));
	else
		status = state_set(command, view.data);
	region_put(command->context, &view);
	return status;
}
