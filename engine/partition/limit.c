// SPDX-License-Identifier: MIT
/*
 * Applies the limits of a PARTITION to each run of items: how many items a run keeps, or which run
 * was too large. It is the only stage that drops items for a limit.
 *
 * It runs alone, after all items are merged, and touches only its job.
 */
#include "partition.h"

static bool run_fits(const struct embeng_partition *g, const struct pcsr_run *run)
{
	return (!g->max_ids || run->ids <= g->max_ids) &&
	       (!g->max_unique_ids || run->columns <= g->max_unique_ids);
}

static u16 too_many(struct pcsr_job *job, u32 core, u32 partition, const struct pcsr_run *run)
{
	const struct embeng_partition *g = job->given;
	bool ids = g->max_ids && run->ids > g->max_ids;

	return fault_set(&job->command->fault, EMBENG_STATUS_LIMIT,
			 ids ? EMBENG_FIELD_MAX_IDS : EMBENG_FIELD_MAX_UNIQUE_IDS, EMBENG_NO_INDEX,
			 (u64)core * g->cores + partition, ids ? run->ids : run->columns,
			 ids ? g->max_ids : g->max_unique_ids);
}

/* Items stay in their order until either limit is reached; then none is taken any more. */
static void cut_run(struct pcsr_job *job, struct pcsr_core *core, u64 first, struct pcsr_run *run)
{
	const struct embeng_partition *g = job->given;
	u32 kept = 0, columns = 0;

	while (kept < run->ids && (!g->max_ids || kept < g->max_ids)) {
		bool begins = !kept || job->tokens[first + kept] != job->tokens[first + kept - 1];

		if (begins && g->max_unique_ids && columns == g->max_unique_ids)
			break;
		columns += begins;
		kept++;
	}
	for (u32 i = kept; i < run->ids; i++)
		core->dropped += job->repeats ? job->repeats[first + i] : 1;
	run->kept = kept;
	run->kept_columns = columns;
}

static u16 limit_core(struct pcsr_job *job, u32 core)
{
	u64 first = job->cores[core].first;

	for (u32 p = 0; p < job->given->cores; p++) {
		struct pcsr_run *runs = pcsr_runs(job, core, p);

		for (u32 b = 0; b < job->buckets; b++) {
			runs[b].kept = runs[b].ids;
			runs[b].kept_columns = runs[b].columns;
			if (!run_fits(job->given, &runs[b])) {
				if (!(job->given->flags & EMBENG_PARTITION_DROPPING))
					return too_many(job, core, p, &runs[b]);
				cut_run(job, &job->cores[core], first, &runs[b]);
			}
			first += runs[b].ids;
		}
	}
	return 0;
}

u16 pcsr_limits(struct pcsr_job *job)
{
	u16 status = 0;

	for (u32 c = 0; !status && c < job->device_cores; c++)
		status = limit_core(job, c);
	return status;
}
