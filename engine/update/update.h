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

u16 update_accept(struct command *command);

/**
 * update_apply() - apply a complete step to the tables
 * @number: the step after the last applied one
 *
 * Resolves the gradients of all replicas again. A failure has changed nothing.
 * Return: 0, or a status with command->fault.
 */
u16 update_apply(struct command *command, u64 number);

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
