// SPDX-License-Identifier: MIT
/*
 * A lane: small lookups of one replica by one thread. Rings and contention are both measured with
 * lanes, so they are apart from either.
 *
 * A lane borrows the engine and its input; its batch belongs to the measurement.
 */
#include "lane.h"

#include <errno.h>
#include <stdio.h>

#include "../frame/exit.h"

enum { BAGS = 64 };

int bench_lane_submit(const struct bench_lane *lane, int which, const int64_t *empty)
{
	const struct bench_input *input = &lane->b->input;
	const struct bench_column *column = &input->columns[which % input->batches][0];
	int err;

	embeng_batch_reset(lane->batch, EMBENG_INFERENCE);
	err = embeng_batch_ragged_splits(lane->batch, 0, input->type, column->ids,
					 empty ? 0 : LANE_BAG, empty ? empty : column->splits, 2,
					 NULL, 0);
	return err ? err : embeng_enqueue(lane->b->e, lane->batch, -1);
}

int bench_lane_take(const struct bench_lane *lane, bool waiting)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	int err;

	do
		err = embeng_dequeue(lane->b->e, lane->replica, waiting ? -1 : 0, &act);
	while (!waiting && err == -ETIME);
	return err ? err : embeng_release(lane->b->e, &act);
}

struct bench_result *bench_lane_result(const struct bench_job *job, const struct bench_engine *b,
				       const struct bench_setup *setup, enum bench_op op,
				       const char *name)
{
	struct bench_result *r = bench_result_add(job->results);

	if (!r) {
		output_fail(job->out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
		return NULL;
	}
	bench_engine_describe(b, setup, op, r);
	r->input = NULL;
	r->workload.name = job->workload->name;
	r->limits = *job->limits;
	snprintf(r->detail, sizeof(r->detail), "%s", name);
	return r;
}

int bench_lane_finish(struct bench_engine *b, struct bench_result *r, int steps)
{
	int err = bench_engine_count(b, r, steps);

	err = err ? err : bench_engine_finish(b, r);
	if (err)
		return err;
	bench_result_finish(r);
	for (int s = STAGE_CHECK; s <= STAGE_UPDATE; s++)
		r->direct_us += r->stage_ms[s] * 1e3 / r->commands;
	return 0;
}

int bench_with_lanes(const struct bench_job *job, uint32_t replicas,
		     int (*measure)(const struct bench_job *job, struct bench_engine *b,
				    const struct bench_setup *setup))
{
	struct bench_workload small = *job->workload;
	struct bench_source source = {
		.type = job->input->type, .batches = BAGS, .seed = job->call->seed};
	struct bench_setup setup = {.call = job->call,
				    .workload = &small,
				    .combiner = EMBENG_SUM,
				    .replicas = replicas};
	struct bench_input input;
	struct bench_engine b;
	int code;

	small.tables = 1;
	small.samples = 1;
	small.pool = LANE_BAG;
	small.pooled = true;
	code = bench_input_make(&input, &small, &source, job->out);
	if (code)
		return code;
	setup.input = &input;
	code = bench_engine_open(&b, &setup, job->out);
	if (!code) {
		code = measure(job, &b, &setup);
		bench_engine_close(&b);
	}
	bench_input_free(&input);
	return code;
}
