// SPDX-License-Identifier: MIT
/*
 * Measures what a save costs the training beside it: the time of each step while a second thread
 * saves, the time of the same steps alone, and the save itself. Each save goes into a new folder below
 * $TMPDIR or /tmp, which is removed with what was saved.
 *
 * The engine is shared by the two threads, as its interface allows; struct saver belongs to the
 * thread that saves until @done is set.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../frame/exit.h"
#include "../frame/scratch.h"
#include "engine.h"
#include "measure.h"

#define STEPS_MOST 65536 /* while one save runs; what comes after them is not counted */
#define QUIET_STEPS 16

struct saver {
	struct embeng *e;
	const struct bench_call *call;
	char *folder;
	double ms;
	int err;
	struct embeng_error error; /* the last error of that thread */
	atomic_bool done;
};

static void *run_save(void *arg)
{
	struct saver *s = arg;
	double began;

	/* The thread that trains stays on the first one, as its engine's first does. */
	machine_pin(s->call->cpus, s->call->cpu_count);
	began = now_ms();
	s->err = embeng_save(s->e, s->folder, NULL);
	s->ms = now_ms() - began;
	s->error = (struct embeng_error){.size = sizeof(s->error)};
	embeng_last_error(&s->error);
	s->done = true;
	return NULL;
}

static int time_one_step(struct bench_engine *b, int number, double *ms)
{
	double began = now_ms();
	int err = bench_engine_step(b, number % b->input.batches, EMBENG_TRAIN);

	*ms = now_ms() - began;
	return err;
}

static int time_quiet_steps(struct bench_engine *b, struct bench_result *r)
{
	double ms[QUIET_STEPS];
	int err = 0;

	/* The first pass finds what is not in memory yet. */
	for (int k = 0; !err && k < b->input.batches; k++)
		err = time_one_step(b, k, &ms[0]);
	for (int k = 0; !err && k < QUIET_STEPS; k++)
		err = time_one_step(b, k, &ms[k]);
	if (!err)
		r->save.quiet_ms = spread_of(ms, QUIET_STEPS);
	return err;
}

/* Steps until the save is done, at least one. */
static int time_steps_beside(struct bench_engine *b, struct saver *s, double *ms, int *count)
{
	int err = 0;

	do {
		err = time_one_step(b, *count, &ms[*count]);
		*count += *count < STEPS_MOST - 1;
	} while (!err && !s->done);
	return err;
}

static int look_at_save(const struct saver *s, struct bench_result *r)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c;
	int err = embeng_checkpoint_open(s->folder, &c, NULL);

	if (err)
		return err;
	err = embeng_checkpoint_info(c, &info);
	r->save.files = info.file_count;
	r->save.bytes = info.bytes;
	embeng_checkpoint_close(c);
	return err;
}

static int save_delta(const struct saver *s, struct embeng_save_report *report)
{
	const struct embeng_save_options o = {
		.size = sizeof(o), .flags = EMBENG_SAVE_DELTA, .keep = 1, .report = report};

	*report = (struct embeng_save_report){.size = sizeof(*report)};
	return embeng_save(s->e, s->folder, &o);
}

/* The changes of the steps beside the save are saved first, so that the delta is that of one step. */
static int time_delta(struct bench_engine *b, struct saver *s, struct bench_result *r, int run)
{
	struct embeng_save_report report;
	double step, began;
	int err = save_delta(s, &report);

	err = err ? err : time_one_step(b, run, &step);
	began = now_ms();
	err = err ? err : save_delta(s, &report);
	r->save.delta_ms[run] = now_ms() - began;
	r->save.is_delta = report.delta;
	r->save.delta_bytes = report.bytes;
	r->save.delta_rows = report.rows;
	return err;
}

static int run_beside(struct bench_engine *b, struct saver *s, struct bench_result *r, int run,
		      double *ms)
{
	int count = 0, err;
	pthread_t thread;
	struct spread steps;

	s->done = false;
	err = pthread_create(&thread, NULL, run_save, s);
	if (err)
		return -err;
	err = time_steps_beside(b, s, ms, &count);
	pthread_join(thread, NULL);
	if (err || s->err)
		return err ? err : s->err;
	steps = spread_of(ms, count);
	r->run_ms[run] = steps.max;
	r->save.beside_ms[run] = steps.median;
	r->save.run_ms[run] = s->ms;
	err = look_at_save(s, r);
	return err ? err : time_delta(b, s, r, run);
}

static int time_saves(struct bench_engine *b, struct saver *s, struct bench_result *r)
{
	double *ms = malloc(STEPS_MOST * sizeof(*ms));
	int err = ms ? time_quiet_steps(b, r) : -ENOMEM;

	for (int k = 0; !err && k < r->runs; k++) {
		err = scratch_make(&s->folder);
		if (err)
			break;
		err = run_beside(b, s, r, k, ms);
		scratch_remove(s->folder);
	}
	free(ms);
	return err;
}

static int fail_save(const struct output *out, int err, const struct saver *s)
{
	if (s->err)
		return output_fail(out, exit_of_errno(s->err), s->err, NULL, "%s", s->error.text);
	return output_library_failure(out, err, NULL);
}

int bench_saves(const struct bench_job *job, const struct bench_optimizer *optimizer)
{
	struct bench_setup setup = {.call = job->call,
				    .workload = job->workload,
				    .optimizer = optimizer,
				    .combiner = EMBENG_SUM,
				    .one_step = true,
				    .saves = true,
				    .input = job->input};
	struct bench_result *r;
	struct saver s = {0};
	struct bench_engine b;
	int err, code = bench_job_open(job, &setup, BENCH_SAVE, &b, &r);

	if (code)
		return code;
	s.e = b.e;
	s.call = job->call;
	err = time_saves(&b, &s, r);
	if (!err) {
		bench_result_finish(r);
		r->stage_ms[STAGE_OTHER] = r->step_ms.median;
	}
	code = err ? fail_save(job->out, err, &s) : 0;
	bench_engine_close(&b);
	return code;
}
