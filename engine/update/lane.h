/* SPDX-License-Identifier: MIT */
/*
 * The memory and counts for the work on one table of a step. Tables that are a small part of the
 * step are taken whole, by one core each, so that what is sorted for one stays in that core's
 * cache and nobody waits for others between the tables; the rest one after another, by all cores.
 */
#ifndef EMBENG_ENGINE_LANE_H
#define EMBENG_ENGINE_LANE_H

#include "../model/model.h"

/**
 * struct lane - the work on one table at a time
 * @model: its owner
 * @core: worker that it belongs to; the first one works on what all cores do, too
 * @partition: occurrences of a table in a step
 * @cuts: first group of each task of an update
 * @cuts_bytes: memory of these
 * @partition_ns: spent since lanes_account(), as @update_ns
 * @update_ns: likewise, for the rows' updates
 * @rows: distinct rows updated since then
 */
struct lane {
	struct model *model;
	u32 core;
	struct partition partition;
	u64 *cuts;
	u64 cuts_bytes;
	u64 partition_ns, update_ns, rows;
};

/* Return: lanes of all cores, or NULL without memory. */
struct lane *lanes_new(struct model *model);
void lanes_free(struct model *model);

/* Bytes that @occurrences of a table touch in a step, and its other rows if they change, too. */
u64 lane_weight(const struct table *table, u64 occurrences);

/* The most of a table that is taken whole. Lanes' memory for it does not grow with the cores. */
#define LANE_OCCURRENCES (1u << 20)

/* Most occurrences of a table that one of @cores takes whole. */
static inline u64 lane_most(u32 tables, u32 cores)
{
	return tables > 1 && cores > 1 ? LANE_OCCURRENCES / cores : 0;
}

/* The bytes of a lane beside its partition: tasks that @occurrences are cut into. */
u64 lane_cuts_bytes(const struct embeng_record_table *record, u64 occurrences);

/**
 * lanes_reserve() - memory for apply_table() of a table, whoever does it
 * @occurrences: the table's in the step
 * @most: lane_most()
 *
 * The memory never depends on what other tables have in the step, so that a step of fewer
 * occurrences never needs more.
 *
 * Return: 0, or -1 without memory.
 */
int lanes_reserve(struct model *model, const struct embeng_record_table *record, u64 occurrences,
		  u64 most);

/**
 * lanes_account() - add what the lanes did to the registers
 * @wall: ns that it took; lanes that worked at once share them as their own times
 *
 * Return: the rows that they updated.
 */
u64 lanes_account(struct model *model, u64 wall);

/* Tasks by all cores, or by the one that takes the table whole. Return: as workers_run(). */
bool lane_run(const struct lane *lane, u32 cores, void (*fn)(void *arg, u64 task, u32 worker),
	      void *arg, u64 tasks, u64 bytes);

static inline u8 *lane_scratch(const struct model *model, u64 core)
{
	return model->scratch + core * model->scratch_stride;
}

#endif
