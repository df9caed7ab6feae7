// SPDX-License-Identifier: MIT
/*
 * Takes the library's counters before and after a measurement and puts the differences and the
 * memory use into its result.
 */
#include <string.h>

#include "engine.h"

int bench_engine_start(struct bench_engine *b)
{
	b->base.size = sizeof(b->base);
	return embeng_counters(b->e, &b->base);
}

static double mean_ms(const struct bench_result *r)
{
	double sum = 0;

	for (int k = 0; k < r->runs; k++)
		sum += r->run_ms[k];
	return sum / r->runs;
}

int bench_engine_count(struct bench_engine *b, struct bench_result *result, int steps)
{
	struct embeng_counter_values now = EMBENG_INIT(embeng_counter_values);
	double per_step = 1e-6 / steps, *ms = result->stage_ms;
	int err = embeng_counters(b->e, &now);

	if (err)
		return err;
	ms[STAGE_CHECK] += (double)(now.time_check_ns - b->base.time_check_ns) * per_step;
	ms[STAGE_LOOKUP] += (double)(now.time_lookup_ns - b->base.time_lookup_ns) * per_step;
	ms[STAGE_PARTITION] += (double)(now.time_partition_ns - b->base.time_partition_ns) *
			       per_step;
	ms[STAGE_UPDATE] += (double)(now.time_update_ns - b->base.time_update_ns) * per_step;
	ms[STAGE_RING] += (double)(now.time_ring_ns - b->base.time_ring_ns) * per_step;
	ms[STAGE_COPY] += (double)(now.time_copy_ns - b->base.time_copy_ns) * per_step;
	result->copied_bytes += (double)(now.bytes_copied - b->base.bytes_copied) / steps;
	return 0;
}

int bench_engine_finish(struct bench_engine *b, struct bench_result *result)
{
	double rest = mean_ms(result);

	for (int s = 0; s < STAGE_OTHER; s++)
		rest -= result->stage_ms[s];
	result->stage_ms[STAGE_OTHER] = rest > 0 ? rest : 0;
	result->held.size = sizeof(result->held);
	return embeng_usage(b->e, &result->held);
}

void bench_engine_describe(const struct bench_engine *b, const struct bench_setup *setup,
			   enum bench_op op, struct bench_result *result)
{
	result->workload = *setup->workload;
	result->op = op;
	result->optimizer = setup->optimizer ? setup->optimizer->name : NULL;
	result->input = setup->call->input;
	result->device = b->device;
	result->type = b->input.type;
	result->threads = (int)b->device.cores;
	result->runs = setup->call->runs;
	result->batches = b->input.batches;
	result->weights = b->input.columns[0][0].weights != NULL;
	result->ids_per_step = bench_step_ids(setup->workload);
	result->slots = b->slots;
	result->slot_rows = b->slot_rows;
	result->planned_bytes = b->planned_bytes;
}
