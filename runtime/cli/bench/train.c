// SPDX-License-Identifier: MIT
/*
 * Measures whole steps: lookups alone, and lookups with their updates. The limits of memory are
 * measured in turn with the runs, so that both meet the machine in the same state.
 */
#include <errno.h>

#include "../frame/exit.h"
#include "engine.h"
#include "measure.h"

static int end_step(struct bench_engine *b, enum embeng_mode mode, struct embeng_activations *act)
{
	const float *gradients[BENCH_TABLES];
	int err;

	if (mode == EMBENG_INFERENCE)
		return embeng_release(b->e, act);
	for (int t = 0; t < b->workload->tables; t++)
		gradients[t] = b->input.gradient;
	err = embeng_apply_gradients(b->e,
				     &EMBENG_INIT(embeng_gradients, .features = gradients,
						  .count = (size_t)b->workload->tables),
				     -1);
	return err ? err : embeng_flush(b->e, -1);
}

static int enqueue_bench_step(struct bench_engine *b, int which, enum embeng_mode mode)
{
	int err = 0;

	embeng_batch_reset(b->batch, mode);
	for (int t = 0; !err && t < b->workload->tables; t++)
		err = bench_engine_add(b, which, t);
	return err ? err : embeng_enqueue(b->e, b->batch, -1);
}

static int dequeue_bench_step(struct bench_engine *b, enum embeng_mode mode)
{
	struct embeng_activations act = EMBENG_INIT(embeng_activations);
	int err = embeng_dequeue(b->e, 0, -1, &act);

	return err ? err : end_step(b, mode, &act);
}

int bench_engine_step(struct bench_engine *b, int which, enum embeng_mode mode)
{
	int err = enqueue_bench_step(b, which, mode);

	return err ? err : dequeue_bench_step(b, mode);
}

/*
 * Memory is held for each place in flight, as it is planned; what is timed needs one. A step that
 * trains takes its lookups one after another.
 */
static int fill_places(struct bench_engine *b)
{
	int given = 0, taken = 0, err = 0;

	for (; !err && given <= BENCH_STEP_DEPTH; given++)
		err = enqueue_bench_step(b, given % b->input.batches, EMBENG_INFERENCE);
	for (; !err && taken < given; taken++)
		err = dequeue_bench_step(b, EMBENG_INFERENCE);
	return err;
}

/* Milliseconds a step of one pass over the batches. */
static int run_step_pass(struct bench_engine *b, enum embeng_mode mode, double *ms)
{
	double began = now_ms();
	int err = 0;

	for (int i = 0; !err && i < b->input.batches; i++)
		err = bench_engine_step(b, i, mode);
	*ms = (now_ms() - began) / b->input.batches;
	return err;
}

/* The limits of these seconds, a pass that finds again what these took from the caches, a run. */
static int time_one_run(struct bench_engine *b, struct bench_beside *beside, enum embeng_mode mode,
			struct bench_result *r, int number)
{
	double uncounted;
	int err = bench_beside_run(beside);

	err = err ? err : run_step_pass(b, mode, &uncounted);
	err = err ? err : bench_engine_start(b);
	err = err ? err : run_step_pass(b, mode, &r->run_ms[number]);
	return err ? err : bench_engine_count(b, r, r->runs * b->input.batches);
}

/* The engine holds all of its memory by then: the limits get what is left. */
static int time_runs(struct bench_engine *b, const struct bench_call *call, enum embeng_mode mode,
		     struct bench_result *r)
{
	struct bench_beside *beside = bench_beside_open(&r->limits, call->cpus, call->cpu_count,
							call->scale);
	int err = beside ? 0 : -ENOMEM;

	for (int k = 0; !err && k < r->runs; k++)
		err = time_one_run(b, beside, mode, r, k);
	bench_beside_close(beside, &r->limits);
	return err ? err : bench_engine_finish(b, r);
}

static int time_steps(struct bench_engine *b, const struct bench_call *call, enum embeng_mode mode,
		      struct bench_result *r)
{
	int err = mode == EMBENG_INFERENCE ? fill_places(b) : 0;

	err = err ? err : run_step_pass(b, mode, &r->run_ms[0]);
	err = err ? err : time_runs(b, call, mode, r);
	if (!err)
		bench_result_finish(r);
	return err;
}

/* Each id's row is read; each row and its slots are changed once, a line of a slot at least. */
static double compute_limit(const struct bench_result *r)
{
	double ms = (double)r->ids_per_step / r->limits.gather.median * 1e3;

	if (r->op == BENCH_TRAIN)
		ms += (1 + r->slot_rows) * r->unique_per_step / r->limits.rmw.median * 1e3;
	return ms;
}

static int measure_op(const struct bench_job *job, enum bench_op op,
		      const struct bench_optimizer *optimizer)
{
	struct bench_setup setup = {.call = job->call,
				    .workload = job->workload,
				    .optimizer = optimizer,
				    .combiner = EMBENG_SUM,
				    .one_step = true,
				    .input = job->input};
	struct bench_result *r;
	struct bench_engine b;
	int err, code = bench_job_open(job, &setup, op, &b, &r);

	if (code)
		return code;
	err = time_steps(&b, job->call, op == BENCH_TRAIN ? EMBENG_TRAIN : EMBENG_INFERENCE, r);
	r->limit_ms = compute_limit(r);
	code = err ? output_library_failure(job->out, err, NULL) : 0;
	bench_engine_close(&b);
	return code;
}

int bench_lookups(const struct bench_job *job)
{
	return measure_op(job, BENCH_FWD, NULL);
}

int bench_training(const struct bench_job *job, const struct bench_optimizer *optimizer)
{
	return measure_op(job, BENCH_TRAIN, optimizer);
}
