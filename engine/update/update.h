/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_UPDATE_H
#define EMBENG_ENGINE_UPDATE_H

#include "../lookup/batch.h"

/* Private copy of an UPDATE's descriptor. */
struct update {
	struct embeng_update header;
	struct embeng_update_feature *features; /* [feature_count] */
	u32 *rates;				/* [rate_count] f32 */
};

struct update *update_new(struct model *model);
void update_free(struct update *update);

/* Phases of UPDATE, and what a DRAIN runs: it applies all complete steps up to its own. */
u16 update_accept(struct command *command);
u64 update_touched(const struct command *command);
u16 update_run(struct command *command);
u16 drain_run(struct command *command);

/**
 * update_partition() - the occurrences of a table in a step, by row
 * @cores: that work on it: all of the engine's, or 1
 *
 * Return: 0, or -1 without memory. The result stays in @lane->partition.
 */
int update_partition(struct lane *lane, u64 number, u32 table, u32 cores);

/* row_stats.c: counts a step in a table's statistics, once. @p is of it. */
void stats_count(struct model *model, struct table *table, const struct partition *p, u64 number);

#endif
