// SPDX-License-Identifier: MIT
/*
 * Measures what a save costs the training beside it: the time of each step while a second thread
 * saves, the time of the same steps alone, and the save itself. Each run has a new folder below $TMPDIR
 * or /tmp: a full save comes first, and then a delta of the rows that the steps beside it changed.
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
	uint32_t flags; /* enum embeng_save_flags */
	struct embeng_save_report report;
	double ms;
	int err;
	struct embeng_error error; /* the last error of that thread */
	atomic_bool done;
};

static void *run_save(void *arg)
{
	struct saver *s = arg;
	const struct embeng_save_options o = EMBENG_INIT(embeng_save_options, .flags = s->flags,
							 .keep = 1, .report = &s->report);
	double began;

	s->report = (struct embeng_save_report){.size = sizeof(s->report)};
	/* The thread that trains stays on the first one, as its engine's first does. */
	machine_pin(s->call->cpus, s->call->cpu_count);
	began = now_ms();
	s->err = embeng_save(s->e, s->folder, &o);
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

static int count_files(const struct saver *s, struct bench_result *r)
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);
	struct embeng_checkpoint *c;
	int err = embeng_checkpoint_open(s->folder, &c, NULL);

	if (err)
		return err;
	err = embeng_checkpoint_info(c, &info);
	r->save.files = info.file_count;
	embeng_checkpoint_close(c);
	return err;
}

/* Steps while one save runs, whose longest one and others go into @saved. */
static int run_beside(struct bench_engine *b, struct saver *s, struct bench_saves *saved, int run,
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
	saved->longest_ms[run] = steps.max;
	saved->beside_ms[run] = steps.median;
	saved->run_ms[run] = s->ms;
	saved->bytes = s->report.bytes;
	saved->rows = s->report.rows;
	saved->deltas += s->report.delta != 0;
	return 0;
}

/* The steps beside the full save changed the rows of the delta. */
static int run_both(struct bench_engine *b, struct saver *s, struct bench_result *r, int run,
		    double *ms)
{
	int err;

	s->flags = 0;
	err = run_beside(b, s, &r->save.full, run, ms);
	err = err ? err : count_files(s, r);
	r->run_ms[run] = r->save.full.longest_ms[run];
	s->flags = EMBENG_SAVE_DELTA;
	return err ? err : run_beside(b, s, &r->save.delta, run, ms);
}

static int time_saves(struct bench_engine *b, struct saver *s, struct bench_result *r)
{
	double *ms = malloc(STEPS_MOST * sizeof(*ms));
	int err = ms ? time_quiet_steps(b, r) : -ENOMEM;

	for (int k = 0; !err && k < r->runs; k++) {
		err = scratch_make(&s->folder);
		if (err)
			break;
		err = run_both(b, s, r, k, ms);
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
