// SPDX-License-Identifier: MIT
/*
 * Adds the steps of training to a table's statistics: ids, distinct rows, the share of each core,
 * hot rows. An update counts its step before it changes the rows, and STATS counts the steps that
 * were looked up and are not updated yet; each step is counted once.
 *
 * Called by the running command, for one table by one thread at a time; engine->lock is not needed,
 * since nobody else touches these sums.
 */
#include "update.h"

/* Division takes longer than all else here, and one core needs none. */
static void count_core_ids(struct command *command, struct table *table, const struct partition *p,
			   u32 cores)
{
	u64 *core_ids = table->stats.core_ids, left = PIECE_ROWS;

	if (cores == 1) {
		core_ids[0] += p->count;
		return;
	}
	for (u64 i = 0; i < p->group_count && !piece_step(command, &left); i++)
		core_ids[model_core(p->groups[i].row, table->index, cores)] += p->groups[i].count;
}

static u64 count_asked(struct model *model, u64 number, u32 table)
{
	u64 sum = 0;

	for (u32 r = 0; r < model_replicas(model); r++) {
		const struct part *part = model_part(model, number, r);
		const struct batch *batch = part->batch;

		for (u32 i = 0; i < batch->feature_count && !part_is_discarded(part); i++) {
			if (model->blob.features[i].table == table)
				sum += batch->features[i].asked;
		}
	}
	return sum;
}

void stats_count(struct model *model, struct table *table, const struct partition *p, u64 number)
{
	if (table->counted >= number)
		return;
	table->counted = number;
	table->stats.steps++;
	table->stats.ids += count_asked(model, number, table->index);
	table->stats.unique_ids += p->group_count;
	count_core_ids(model->command, table, p, model->engine->caps.cores);
	hot_add(&table->stats.hot, p->groups, p->group_count, model->command);
}
