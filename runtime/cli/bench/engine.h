/* SPDX-License-Identifier: MIT */
/* An open engine with a workload's tables, and the steps' input where the engine reaches it. */
#ifndef CLI_BENCH_ENGINE_H
#define CLI_BENCH_ENGINE_H

#include "call.h"
#include "result.h"

#define BENCH_STEP_DEPTH 1 /* of a bench_setup.one_step */

/**
 * struct bench_setup - what to open
 * @optimizer: of the tables, or NULL: for inference alone
 * @unweighted: the input's weights are left out
 * @replicas: 0 is 1
 * @one_step: memory for one step at a time
 * @input: drawn or read; copied into the engine's buffers
 */
struct bench_setup {
	const struct bench_call *call;
	const struct bench_workload *workload;
	const struct bench_optimizer *optimizer;
	enum embeng_combiner_name combiner;
	uint32_t replicas;
	bool unweighted, one_step;
	const struct bench_input *input;
};

/**
 * struct bench_engine - what is open
 * @input: in buffers; freed with the engine
 * @base: counters when the timed runs began
 */
struct bench_engine {
	const struct bench_workload *workload;
	struct embeng *e;
	struct embeng_batch *batch;
	struct bench_input input;
	struct embeng_device_info device;
	uint64_t planned_bytes;
	size_t slots;
	struct embeng_counter_values base;
};

/* 0, or an exit code: the failure is reported, and nothing is open. */
int bench_engine_open(struct bench_engine *b, const struct bench_setup *setup,
		      const struct output *out);
void bench_engine_close(struct bench_engine *b);

/* Adds a step's input of one feature to the batch. 0 or a negative errno, as of the library. */
int bench_engine_add(struct bench_engine *b, int which, int table);

/* counters.c: forgets what was counted so far. */
int bench_engine_start(struct bench_engine *b);

/* Adds what was counted since then: one part in @steps, which are all that are timed. */
int bench_engine_count(struct bench_engine *b, struct bench_result *result, int steps);

/* Sets what the counted stages leave of the runs, and what is held. */
int bench_engine_finish(struct bench_engine *b, struct bench_result *result);

/* A result of this engine, all but what was measured filled in. */
void bench_engine_describe(const struct bench_engine *b, const struct bench_setup *setup,
			   enum bench_op op, struct bench_result *result);

#endif
