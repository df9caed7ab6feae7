// SPDX-License-Identifier: MIT
/*
 * The list of results of a benchmark: adds one, and computes the numbers that follow from what was
 * measured.
 *
 * The list belongs to the caller, who frees its items.
 */
#include <stdlib.h>
#include <string.h>

#include "result.h"

const char *const bench_stage_names[BENCH_STAGES] = {
	[STAGE_CHECK] = "check",   [STAGE_LOOKUP] = "lookup", [STAGE_PARTITION] = "partition",
	[STAGE_UPDATE] = "update", [STAGE_RING] = "ring",     [STAGE_COPY] = "copy",
	[STAGE_OTHER] = "other",
};

struct bench_result *bench_result_add(struct bench_results *results)
{
	struct bench_result *items = reallocarray(results->items, results->count + 1,
						  sizeof(*items));

	if (!items)
		return NULL;
	results->items = items;
	items[results->count] = (struct bench_result){0};
	return &items[results->count++];
}

void bench_result_finish(struct bench_result *result)
{
	double sorted[RUNS_MOST];

	memcpy(sorted, result->run_ms, sizeof(sorted));
	result->step_ms = spread_of(sorted, result->runs);
}
