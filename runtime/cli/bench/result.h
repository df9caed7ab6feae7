/* SPDX-License-Identifier: MIT */
/* One thing that was measured, with all that a ratio of it needs. */
#ifndef CLI_BENCH_RESULT_H
#define CLI_BENCH_RESULT_H

#include "call.h"
#include "limits.h"

#define BENCH_DETAIL 48

enum bench_stage {
	STAGE_CHECK,
	STAGE_LOOKUP,
	STAGE_PARTITION,
	STAGE_UPDATE,
	STAGE_RING,
	STAGE_COPY,
	STAGE_OTHER, /* the program and the library, and what partitions take */
	BENCH_STAGES,
};

extern const char *const bench_stage_names[BENCH_STAGES];

/**
 * struct bench_result - one measurement
 * @workload: as it was run: scaled
 * @optimizer: name, or NULL
 * @detail: which partition, or which command of a ring, "" of others
 * @limits: of this workload's rows; of steps taken between their runs, else before them
 * @threads: cores of the device
 * @input: folder, or NULL: drawn
 * @runs: how many
 * @run_ms: [runs] of a step, the mean over the run's batches, in order
 * @unique_per_step: different rows, the mean over the batches
 * @slots: of each table
 * @stage_ms: of a step, the mean over all runs
 * @copied_bytes: of a step
 * @held: of the engine when the runs ended; @planned_bytes: forecast of all of it
 * @limit_ms: what the memory's limits give for such a step, 0: there is no such limit
 * @commands: of a ring's step; 0 of other operations
 * @in_flight: most of them at a time
 * @direct_us: what the engine itself took for one of them
 * @waiting: not polled for
 * @partition: what came out, of BENCH_PARTITION
 */
struct bench_result {
	struct bench_workload workload;
	enum bench_op op;
	const char *optimizer, *input;
	char detail[BENCH_DETAIL];
	struct bench_limits limits;
	struct embeng_device_info device;
	enum embeng_id_type type;
	int threads, runs, batches;
	bool weights;
	double run_ms[RUNS_MOST];
	struct spread step_ms;
	uint64_t ids_per_step;
	double unique_per_step;
	size_t slots;
	double stage_ms[BENCH_STAGES], copied_bytes;
	struct embeng_usage held;
	uint64_t planned_bytes;
	double limit_ms;
	int commands, in_flight;
	bool waiting;
	double direct_us;
	struct {
		uint32_t sparse_cores, cores_per_device, minibatches;
		uint64_t dropped_ids;
	} partition;
};

/**
 * struct bench_results - all of them, in the order in which they were measured
 * @limits: [limit_count], one for each workload
 */
struct bench_results {
	struct bench_result *items;
	size_t count;
	struct bench_limits limits[BENCH_WORKLOADS];
	size_t limit_count;
};

/* A new one at the end, zeroed, or NULL; earlier ones move. */
struct bench_result *bench_result_add(struct bench_results *results);

/* Sets step_ms by run_ms. */
void bench_result_finish(struct bench_result *result);

#endif
