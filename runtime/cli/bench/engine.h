/* SPDX-License-Identifier: MIT */
/* An open engine with a workload's tables, and the steps' input where the engine reaches it. */
#ifndef CLI_BENCH_ENGINE_H
#define CLI_BENCH_ENGINE_H

#include "call.h"
#include "result.h"

#define BENCH_STEP_DEPTH 1 /* step depth with bench_setup.one_step */

/**
 * struct bench_setup - settings of the engine to open
 * @optimizer: optimizer of the tables; NULL: the engine is for inference only
 * @unweighted: do not pass the input's weights
 * @replicas: number of replicas; 0 counts as 1
 * @one_step: have memory for only one step at a time
 * @saves: have memory for a save while steps go on
 * @input: drawn or read input, which is copied into the engine's buffers
 */
struct bench_setup {
	const struct bench_call *call;
	const struct bench_workload *workload;
	const struct bench_optimizer *optimizer;
	enum embeng_combiner_name combiner;
	uint32_t replicas;
	bool unweighted, one_step, saves;
	const struct bench_input *input;
};

/**
 * struct bench_engine - an open engine
 * @input: the input in the engine's buffers, freed with the engine
 * @base: counters at the start of the timed runs
 */
struct bench_engine {
	const struct bench_workload *workload;
	struct embeng *e;
	struct embeng_batch *batch;
	struct bench_input input;
	struct embeng_device_info device;
	uint64_t planned_bytes;
	size_t slots;
	double slot_rows;
	struct embeng_counter_values base;
};

/* Opens an engine. Return: 0, or an exit code after the failure was reported and all was closed. */
int bench_engine_open(struct bench_engine *b, const struct bench_setup *setup,
		      const struct output *out);

struct bench_job;

/* Opens the engine of a job, and adds a result with what is known before the operation runs. */
int bench_job_open(const struct bench_job *job, const struct bench_setup *setup, enum bench_op op,
		   struct bench_engine *b, struct bench_result **result);
void bench_engine_close(struct bench_engine *b);

/* Adds a step's input of one feature to the batch. Return: 0 or a negative errno of the library. */
int bench_engine_add(struct bench_engine *b, int which, int table);

/* train.c: one step from its lookup to its end, with a batch of the input. */
int bench_engine_step(struct bench_engine *b, int which, enum embeng_mode mode);

/* counters.c: starts counting anew. */
int bench_engine_start(struct bench_engine *b);

/* Adds the counts since then to a result, divided by @steps, the number of timed steps. */
int bench_engine_count(struct bench_engine *b, struct bench_result *result, int steps);

/* Sets the time that no stage accounts for, and the memory that is held. */
int bench_engine_finish(struct bench_engine *b, struct bench_result *result);

/* Fills in everything of a result except the measurements. */
void bench_engine_describe(const struct bench_engine *b, const struct bench_setup *setup,
			   enum bench_op op, struct bench_result *result);

#endif
