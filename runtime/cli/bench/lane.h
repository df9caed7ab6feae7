/* SPDX-License-Identifier: MIT */
/* Small lookups of one replica, by one thread: what rings are measured with. */
#ifndef CLI_BENCH_LANE_H
#define CLI_BENCH_LANE_H

#include "engine.h"
#include "measure.h"

enum { LANE_BAG = 20 };
/* Commands of a run, when it is not scaled. */
#define LANE_COMMANDS 16384

/**
 * struct bench_lane - one way to the device
 * @batch: of the replica
 */
struct bench_lane {
	struct bench_engine *b;
	struct embeng_batch *batch;
	uint32_t replica;
};

/* One bag: of LANE_BAG ids, or by the splits @empty of none. 0 or a negative errno. */
int bench_lane_submit(const struct bench_lane *lane, int which, const int64_t *empty);
/* The activations that come next; asking again and again, or waiting. */
int bench_lane_take(const struct bench_lane *lane, bool waiting);

/* @commands of @name, @in_flight at a time, or NULL: out of memory, which is reported. */
struct bench_result *bench_lane_result(const struct bench_job *job, const struct bench_engine *b,
				       const struct bench_setup *setup, enum bench_op op,
				       const char *name);
/* After the runs of @steps each. */
int bench_lane_finish(struct bench_engine *b, struct bench_result *r, int steps);

/* @measure with an engine of @replicas, the workload's first table and single bags of its law. */
int bench_with_lanes(const struct bench_job *job, uint32_t replicas,
		     int (*measure)(const struct bench_job *job, struct bench_engine *b,
				    const struct bench_setup *setup));

#endif
