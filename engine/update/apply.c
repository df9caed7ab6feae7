/* SPDX-License-Identifier: MIT */
/*
 * Applies a complete step to all tables. Memory is reserved first, so that a step that fails leaves
 * every table as it was. Then small tables are taken whole by one core each, and large ones by all
 * cores, one after another.
 *
 * Called without engine->lock by the running command, which alone touches tables. The lock is taken
 * to map the gradients, to release them, and to make the step count.
 */
#include "finite.h"
#include "../lookup/stale.h"
#include "../step/step.h"

static bool feature_trains(const struct model *model, u32 feature)
{
	return table_trains(&model->tables[model->blob.features[feature].table]);
}

/* Those of tables that the update changes; others are not read. */
static u16 get_gradients(struct command *command, u64 number)
{
	struct model *model = command->context->model;
	u32 features = model->blob.engine.feature_count;
	u16 status = 0;

	port_lock(model->engine->lock);
	for (u64 i = 0; !status && i < (u64)features * model_replicas(model); i++) {
		const struct part *part = model_part(model, number, (u32)(i / features));
		const struct embeng_mem *mem = &part->gradients->features[i % features].gradients;

		if (!part_is_discarded(part) && mem_given(mem) &&
		    feature_trains(model, (u32)(i % features)))
			status = region_get_held(command, mem, EMBENG_REGION_DEVICE_READ, 4,
						 EMBENG_FIELD_GRADIENTS, (u32)(i % features),
						 &model->gradients[i]);
	}
	port_unlock(model->engine->lock);
	return status;
}

static u64 put_gradients(struct command *command)
{
	struct model *model = command->context->model;
	u32 parts = model->blob.engine.feature_count * model_replicas(model);
	u64 bytes = 0;

	for (u32 i = 0; i < parts; i++)
		bytes += model->gradients[i].length;
	region_put_all(command->context, model->gradients, parts);
	return bytes;
}

/* A step whose rows were not looked up has the holders of their largest numbers found now. */
static void find_holders(struct command *command, u64 number)
{
	struct model *model = command->context->model;

	for (u32 r = 0; r < model_replicas(model); r++) {
		const struct part *part = model_part(model, number, r);

		if (!part_is_discarded(part) && part->batch->ids_only &&
		    !lookup_holders(command, part->batch))
			return;
	}
}

/* Computes the work of each table in the step. Return: the sum. */
static u64 weigh_tables(struct model *model, u64 number)
{
	u32 tables = model->blob.engine.table_count, features = model->blob.engine.feature_count;
	u64 sum = 0;

	for (u32 t = 0; t < tables; t++)
		model->tables[t].due = 0;
	for (u32 r = 0; r < model_replicas(model); r++) {
		const struct part *part = model_part(model, number, r);
		const struct batch *batch = part->batch;

		for (u32 i = 0; i < features && !part_is_discarded(part); i++)
			model->tables[model->blob.features[i].table].due +=
				batch->features[i].occurrences;
	}
	for (u32 t = 0; t < tables; t++)
		sum += lane_weight(&model->tables[t], model->tables[t].due);
	return sum;
}

struct tables {
	struct model *model;
	u64 number, weight, most; /* lane_most() */
	bool early;		  /* the lookups of the next step are not to see it */
};

/* Whether one core takes the table: the last one that is at work keeps nobody waiting for long. */
static bool goes_whole(const struct tables *tables, const struct table *table)
{
	return table->due <= tables->most &&
	       lane_weight(table, table->due) <=
		       tables->weight / 2 / tables->model->engine->caps.cores;
}

/* Where a snapshot finds no memory it ends; the step does not fail. */
static void reserve_kept(struct model *model, struct table *table)
{
	if (table->kernel == U32_MAX)
		return;
	kept_reserve(model, table,
		     table->record.flags & EMBENG_TABLE_NON_LAZY ? table->record.rows : table->due);
}

/*
 * All memory that the step needs is there before the first table changes: a
 * failure leaves all of them as they were.
 */
static int reserve_tables(const struct tables *tables)
{
	struct model *model = tables->model;

	for (u32 t = 0; t < model->blob.engine.table_count; t++) {
		struct table *table = &model->tables[t];

		if (piece_over(model->command) ||
		    (tables->early && stale_reserve(model, table, table->due)))
			return -1;
		if (lanes_reserve(model, &table->record, table->due, tables->most))
			return -1;
	}
	for (u32 t = 0; t < model->blob.engine.table_count; t++)
		reserve_kept(model, &model->tables[t]);
	return piece_over(model->command) ? -1 : 0;
}

static void whole_task(void *arg, u64 task, u32 worker)
{
	const struct tables *tables = arg;
	struct model *model = tables->model;
	struct table *table = &model->tables[task];

	if (goes_whole(tables, table))
		apply_table(&model->lanes[worker], tables->number, table, 1);
}

static u64 apply_tables(struct tables *tables)
{
	struct model *model = tables->model;
	u32 count = model->blob.engine.table_count, cores = model->engine->caps.cores, small = 0;
	u64 begun = port_now_ns(), whole = 0;

	for (u32 t = 0; t < count && !command_is_cut(model->command); t++) {
		struct table *table = &model->tables[t];

		if (!goes_whole(tables, table)) {
			apply_table(&model->lanes[0], tables->number, table, cores);
			continue;
		}
		small++;
		whole += lane_weight(table, table->due);
	}
	/* One without an id in the step weighs nothing, and counts it all the same. */
	if (small && !command_is_cut(model->command))
		workers_run(model->command, whole_task, tables, count, whole);
	return lanes_account(model, port_now_ns() - begun);
}

/* No table changes in a step that all replicas gave up. */
static void skip_step(struct model *model, u64 number)
{
	stale_forget(model);
	port_lock(model->engine->lock);
	step_applied(model, number, 0);
	port_unlock(model->engine->lock);
}

/*
 * update_apply() - apply a complete step to the tables
 * @number: the step after the last applied one
 * @early: with pipelining, before the lookups of the next step, which are not to see it
 *
 * Resolves the gradients of all replicas again. A failure has changed nothing.
 * Return: 0, or a status with command->fault.
 */
static u16 update_apply(struct command *command, u64 number, bool early)
{
	struct model *model = command->context->model;
	struct engine *engine = model->engine;
	struct tables tables = { model, number, weigh_tables(model, number),
				 lane_most(model->blob.engine.table_count, engine->caps.cores),
				 early };
	u64 parts = (u64)model->blob.engine.feature_count * model_replicas(model), rows;
	u16 status;

	stale_forget(model);
	memset(model->gradients, 0, parts * sizeof(*model->gradients));
	if (early)
		stale_begin(model, number);
	status = get_gradients(command, number);
	if (!status)
		status = finite_check(command, number);
	if (!status && reserve_tables(&tables) && !command_is_cut(command))
		status = fault_set(&command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_NONE,
				   EMBENG_NO_INDEX, 0, 0, 0);
	if (!status)
		find_holders(command, number);
	if (!status && command_is_cut(command))
		status = abort_command(command);
	if (status) {
		stale_forget(model);
		put_gradients(command);
		return status;
	}
	command->finishes = true;
	rows = apply_tables(&tables);
	reg_count(engine, EMBENG_REG_COUNT_BYTES_READ, put_gradients(command));
	if (command_is_cut(command))
		return abort_command(command);
	reg_count(engine, EMBENG_REG_COUNT_UPDATES, 1);
	reg_count(engine, EMBENG_REG_COUNT_UNIQUE_ROWS, rows);
	command->rows = rows;
	port_lock(engine->lock);
	step_applied(model, number, rows);
	port_unlock(engine->lock);
	return 0;
}

static u16 complete_step(struct command *command, u64 number, bool early)
{
	struct model *model = command->context->model;

	if (step_discards(model, number) < model_replicas(model))
		return update_apply(command, number, early);
	skip_step(model, number);
	return 0;
}

u64 update_touched(const struct command *command)
{
	/* The last UPDATE of a step applies those of all replicas. */
	return model_replicas(command->context->model) == 1 ? batch_of(command)->bytes : U64_MAX;
}

u16 update_run(struct command *command)
{
	return step_update_applied(command) ? 0 : complete_step(command, command->cmd.step, false);
}

u16 drain_run(struct command *command)
{
	struct model *model = command->context->model;
	struct embeng_steps steps;
	u16 status = 0;
	u64 last, looked;

	/* No lookup for training runs meanwhile. */
	port_lock(model->engine->lock);
	steps = model_steps(model);
	last = embeng_steps_complete(&steps, command->cmd.step);
	looked = embeng_steps_looked(&steps);
	port_unlock(model->engine->lock);
	while (!status && model->applied < last) {
		u64 next = model->applied + 1;

		status = complete_step(command, next, model->pipelining && looked <= next);
	}
	return status;
}
