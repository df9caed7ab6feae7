// SPDX-License-Identifier: MIT
/*
 * Measures the time from handing small lookups over to having their activations: a bag without ids,
 * which is the smallest lookup that there is, and a bag of 20 ids. They come alone and in batches,
 * and the thread either asks again and again or waits.
 */
#include <errno.h>

#include "../frame/exit.h"
#include "lane.h"

/**
 * struct command - the lookup that is handed over
 * @empty: splits of a bag without ids, NULL: one with ids
 */
struct command {
	const char *name;
	const int64_t *empty;
};

/* As many as there are places are handed over before the first is taken. */
static int run_trip(const struct bench_lane *lane, const struct bench_result *r,
		    const struct command *c)
{
	int given = 0, err = 0;

	for (int taken = 0; !err && taken < r->commands; taken++) {
		while (!err && given < r->commands && given - taken < r->in_flight)
			err = bench_lane_submit(lane, given++, c->empty);
		err = err ? err : bench_lane_take(lane, r->waiting);
	}
	return err;
}

static int run_ring_pass(const struct bench_lane *lane, const struct bench_result *r,
			 const struct command *c, int trips, double *ms)
{
	double began = now_ms();
	int err = 0;

	for (int k = 0; !err && k < trips; k++)
		err = run_trip(lane, r, c);
	*ms = (now_ms() - began) / trips;
	return err;
}

static int time_trips(struct bench_engine *b, struct bench_result *r, const struct command *c,
		      double scale)
{
	const struct bench_lane lane = {.b = b, .batch = b->batch};
	int trips = (int)(LANE_COMMANDS * scale) / r->commands + 1;
	int err = run_ring_pass(&lane, r, c, trips, &r->run_ms[0]);

	err = err ? err : bench_engine_start(b);
	for (int k = 0; !err && k < r->runs; k++)
		err = run_ring_pass(&lane, r, c, trips, &r->run_ms[k]);
	return err ? err : bench_lane_finish(b, r, r->runs * trips);
}

static int measure_ring(const struct bench_job *job, struct bench_engine *b,
			const struct bench_setup *setup, const struct command *c, int commands,
			bool waiting)
{
	int places = (int)b->device.step_depth + 1, err;
	struct bench_result *r = bench_lane_result(job, b, setup, BENCH_RING, c->name);

	if (!r)
		return CLI_DEVICE;
	r->commands = commands;
	r->in_flight = commands < places ? commands : places;
	r->waiting = waiting;
	r->ids_per_step = c->empty ? 0 : (uint64_t)commands * LANE_BAG;
	err = time_trips(b, r, c, job->call->scale);
	return err ? output_library_failure(job->out, err, NULL) : 0;
}

static int measure_rings(const struct bench_job *job, struct bench_engine *b,
			 const struct bench_setup *setup)
{
	static const int batches[] = {1, 8, 64};
	const struct command kinds[] = {{"empty", embeng_buffer_alloc(b->e, 2 * sizeof(int64_t))},
					{"bag of 20", NULL}};
	int code = 0;

	if (!kinds[0].empty)
		return output_library_failure(job->out, -ENOMEM, NULL);
	for (size_t k = 0; !code && k < 4 * sizeof(batches) / sizeof(batches[0]); k++)
		code = measure_ring(job, b, setup, &kinds[k >> 1 & 1], batches[k / 4], k & 1);
	return code;
}

int bench_rings(const struct bench_job *job)
{
	return bench_with_lanes(job, 1, measure_rings);
}
