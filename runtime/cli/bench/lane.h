/* SPDX-License-Identifier: MIT */
/* Small lookups of one replica by one thread, which measure the rings. */
#ifndef CLI_BENCH_LANE_H
#define CLI_BENCH_LANE_H

#include "engine.h"
#include "measure.h"

enum { LANE_BAG = 20 };
/* Commands of a run that is not scaled. */
#define LANE_COMMANDS 16384

/**
 * struct bench_lane - a replica and its batch, used by one thread
 * @batch: batch of the replica
 */
struct bench_lane {
	struct bench_engine *b;
	struct embeng_batch *batch;
	uint32_t replica;
};

/* Submits one bag: LANE_BAG ids, or with splits @empty none. 0 or a negative errno. */
int bench_lane_submit(const struct bench_lane *lane, int which, const int64_t *empty);
/* Takes the next activations, by waiting or else by polling. */
int bench_lane_take(const struct bench_lane *lane, bool waiting);

/* Adds a result of the operation @name. Return: NULL without memory, which is reported. */
struct bench_result *bench_lane_result(const struct bench_job *job, const struct bench_engine *b,
				       const struct bench_setup *setup, enum bench_op op,
				       const char *name);
/* Completes a result after its runs, of @steps each. */
int bench_lane_finish(struct bench_engine *b, struct bench_result *r, int steps);

/*
 * Calls @measure with an engine for the workload's first table, @replicas and batches of one bag.
 */
int bench_with_lanes(const struct bench_job *job, uint32_t replicas,
		     int (*measure)(const struct bench_job *job, struct bench_engine *b,
				    const struct bench_setup *setup));

#endif
