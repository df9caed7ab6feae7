/* SPDX-License-Identifier: MIT */
/* A measurement, with everything that is needed to relate it to the limits. */
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
	STAGE_OTHER, /* time of the program, the library and partitioning */
	BENCH_STAGES,
};

extern const char *const bench_stage_names[BENCH_STAGES];

/**
 * struct bench_saves - saves of one kind, one in each run, with the training beside them
 * @longest_ms: [runs] longest step beside the save
 * @beside_ms: [runs] median step beside the save
 * @run_ms: [runs] the save's own time
 * @bytes: bytes that the last one wrote
 * @rows: rows that the last one wrote
 * @deltas: number of runs in which it was a delta
 */
struct bench_saves {
	double longest_ms[RUNS_MOST], beside_ms[RUNS_MOST], run_ms[RUNS_MOST];
	uint64_t bytes, rows;
	int deltas;
};

/**
 * struct bench_result - one measurement
 * @workload: the workload after scaling
 * @optimizer: name of the optimizer, or NULL
 * @detail: name of the partition or of the command on a ring; "" for other operations
 * @limits: limits for this workload's rows, measured between the runs of steps, or before them
 * @threads: cores of the device
 * @input: folder that the input was read from; NULL: it was drawn
 * @runs: number of runs
 * @run_ms: [runs] milliseconds of a step, as mean over the run's batches, in the order of runs
 * @unique_per_step: different rows in a step, as mean over the batches
 * @slots: number of slots of each table
 * @slot_rows: how many rows' bytes the slots of a row move
 * @stage_ms: milliseconds of a step in each stage, as mean over all runs
 * @copied_bytes: bytes that were copied in a step
 * @held: memory that the engine held at the end of the runs; @planned_bytes is its forecast
 * @limit_ms: milliseconds of such a step at the memory's limits, 0: there is no such limit
 * @commands: commands in a step on a ring; 0 for other operations
 * @in_flight: most commands in flight at a time
 * @direct_us: microseconds that the engine itself took for one command
 * @waiting: completions were waited for instead of polled
 * @partition: outcome of BENCH_PARTITION
 * @save: outcome of BENCH_SAVE, whose @run_ms are the longest steps beside a full save: the steps
 *	before any save, the files of a full save, and what was measured of either kind
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
	double slot_rows;
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
	struct {
		struct spread quiet_ms;
		uint64_t files;
		struct bench_saves full, delta;
	} save;
};

/**
 * struct bench_results - all of them, in the order in which they were measured
 * @limits: [limit_count] limits, one for each workload
 */
struct bench_results {
	struct bench_result *items;
	size_t count;
	struct bench_limits limits[BENCH_WORKLOADS];
	size_t limit_count;
};

/* Adds a zeroed result at the end, which may move the earlier ones. Return: NULL without memory. */
struct bench_result *bench_result_add(struct bench_results *results);

/* Sets step_ms from run_ms. */
void bench_result_finish(struct bench_result *result);

#endif
