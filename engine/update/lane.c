/* SPDX-License-Identifier: MIT */
/*
 * Lanes: what one core needs to sort and cut a table's occurrences. Lane 0 is large enough for
 * tables that all cores work on; the others hold the small tables that one core takes whole.
 *
 * Lanes belong to the model, and their memory grows in lanes_reserve() before a step changes
 * anything. No lock is needed: each core uses its own lane, and only the running command reserves
 * or accounts.
 */
#include "lane.h"

/* Bytes of an occurrence while it is sorted: an item and its copy, its number, its group. */
#define SORTED_BYTES 36u

struct lane *lanes_new(struct model *model)
{
	u32 cores = model->engine->caps.cores;
	struct lane *lanes = model_alloc(model, cores * sizeof(*lanes));

	for (u32 l = 0; lanes && l < cores; l++) {
		lanes[l].model = model;
		lanes[l].core = l;
		lanes[l].partition.model = model;
	}
	return lanes;
}

void lanes_free(struct model *model)
{
	for (u32 l = 0; model->lanes && l < model->engine->caps.cores; l++) {
		partition_free(&model->lanes[l].partition);
		port_free(model->lanes[l].cuts);
	}
	port_free(model->lanes);
}

u64 lane_weight(const struct table *table, u64 occurrences)
{
	const struct embeng_record_table *record = &table->record;
	u64 row = 4ull * record->dim, changed = 2 * row * (1 + record->slot_count);
	u64 weight = occurrences * (row + changed + SORTED_BYTES);

	if (!table_trains(table))
		return occurrences * SORTED_BYTES;
	return record->flags & EMBENG_TABLE_NON_LAZY ? weight + record->rows * changed : weight;
}

/* Two tasks that follow each other have more occurrences together than one may have. */
u64 lane_cuts_bytes(const struct embeng_record_table *record, u64 occurrences)
{
	return (occurrences / chunk_rows(record->dim) * 2 + 3) * sizeof(u64);
}

static int reserve_lane(struct lane *lane, const struct embeng_record_table *record,
			u64 occurrences, u32 cores)
{
	if (partition_reserve(&lane->partition, occurrences, record->rows, cores))
		return -1;
	return grow(lane->model, (void **)&lane->cuts, &lane->cuts_bytes,
		    lane_cuts_bytes(record, occurrences));
}

int lanes_reserve(struct model *model, const struct embeng_record_table *record, u64 occurrences,
		  u64 most)
{
	u32 cores = model->engine->caps.cores;
	int failed = reserve_lane(&model->lanes[0], record, occurrences, cores);

	for (u32 l = 1; !failed && most && l < cores; l++)
		failed = reserve_lane(&model->lanes[l], record,
				      occurrences < most ? occurrences : most, 1);
	return failed;
}

bool lane_run(const struct lane *lane, u32 cores, void (*fn)(void *arg, u64 task, u32 worker),
	      void *arg, u64 tasks, u64 bytes)
{
	struct command *command = lane->model->command;

	if (cores == lane->model->engine->caps.cores)
		return workers_run(command, fn, arg, tasks, bytes);
	for (u64 task = 0; task < tasks; task++) {
		fn(arg, task, lane->core);
		if (piece_over(command))
			return false;
	}
	return true;
}

u64 lanes_account(struct model *model, u64 wall)
{
	struct engine *engine = model->engine;
	u64 partition = 0, update = 0, rows = 0, busy;

	for (u32 l = 0; l < engine->caps.cores; l++) {
		struct lane *lane = &model->lanes[l];

		partition += lane->partition_ns;
		update += lane->update_ns;
		rows += lane->rows;
		lane->partition_ns = lane->update_ns = lane->rows = 0;
	}
	busy = partition + update;
	if (busy > wall) { /* in 1024ths, so that no time is too long to be multiplied */
		partition = wall / 1024 * (partition * 1024 / busy);
		update = wall - partition;
	}
	reg_count(engine, EMBENG_REG_TIME_PARTITION, partition);
	reg_count(engine, EMBENG_REG_TIME_UPDATE, update);
	return rows;
}
