// SPDX-License-Identifier: MIT
/*
 * Measures several threads at once, each with small lookups on queues of its own and one in flight
 * each: the cost for them of sharing one engine. A step is one command of each.
 *
 * The threads live for one measurement and meet at a barrier before and after each pass.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "../frame/exit.h"
#include "lane.h"

#define PRODUCERS 4

/* @gate: threads go on at 1 and end at -1 */
struct contest {
	struct bench_result *r;
	pthread_barrier_t barrier;
	int trips, gate;
};

struct producer {
	struct contest *contest;
	struct bench_lane lane;
	pthread_t thread;
	int cpu, number, err;
};

static int run_small_lookups(const struct producer *p)
{
	int err = 0;

	for (int k = 0; !err && k < p->contest->trips; k++) {
		err = bench_lane_submit(&p->lane, k + p->number, NULL);
		err = err ? err : bench_lane_take(&p->lane, p->contest->r->waiting);
	}
	return err;
}

/* One that failed comes to the barriers all the same, or the others would wait for ever. */
static double run_contest_pass(struct producer *p)
{
	double began;

	pthread_barrier_wait(&p->contest->barrier);
	began = now_ms();
	p->err = p->err ? p->err : run_small_lookups(p);
	pthread_barrier_wait(&p->contest->barrier);
	return (now_ms() - began) / p->contest->trips;
}

static void *produce_commands(void *arg)
{
	struct producer *p = arg;
	int gate;

	while (!(gate = __atomic_load_n(&p->contest->gate, __ATOMIC_ACQUIRE)))
		sched_yield();
	machine_pin(&p->cpu, 1);
	for (int k = -1; gate > 0 && k < p->contest->r->runs; k++)
		run_contest_pass(p);
	return NULL;
}

/* The caller is the first of them, and takes the times. */
static int time_contest_passes(struct producer *first)
{
	struct bench_result *r = first->contest->r;
	int err;

	run_contest_pass(first);
	err = bench_engine_start(first->lane.b);
	for (int k = 0; k < r->runs; k++)
		r->run_ms[k] = run_contest_pass(first);
	return err;
}

static int run_producers(struct producer *producers, int count, struct contest *c)
{
	int started = 1, err;

	err = -pthread_barrier_init(&c->barrier, NULL, (unsigned int)count);
	if (err)
		return err;
	for (; !err && started < count; started += !err)
		err = -pthread_create(&producers[started].thread, NULL, produce_commands,
				      &producers[started]);
	__atomic_store_n(&c->gate, err ? -1 : 1, __ATOMIC_RELEASE);
	err = err ? err : time_contest_passes(&producers[0]);
	while (--started > 0) {
		pthread_join(producers[started].thread, NULL);
		err = err ? err : producers[started].err;
	}
	pthread_barrier_destroy(&c->barrier);
	return err ? err : producers[0].err;
}

/* @count: how many producers there are, PRODUCERS at most */
static int hold_contest(const struct bench_job *job, struct bench_engine *b, int count,
			struct bench_result *r)
{
	const struct bench_call *call = job->call;
	struct contest c = {.r = r, .trips = (int)(LANE_COMMANDS * call->scale) / count + 1};
	struct producer producers[PRODUCERS] = {0};
	int err = 0;

	for (int k = 0; k < count; k++) {
		struct embeng_batch *batch = embeng_batch_new(b->e, EMBENG_INFERENCE, (uint32_t)k);

		producers[k] = (struct producer){.contest = &c,
						 .lane = {b, batch, (uint32_t)k},
						 .cpu = call->cpus[k % call->cpu_count],
						 .number = k};
		err = batch ? err : -ENOMEM;
	}
	err = err ? err : run_producers(producers, count, &c);
	for (int k = 0; k < count; k++)
		embeng_batch_free(producers[k].lane.batch);
	return err ? err : bench_lane_finish(b, r, r->runs * c.trips);
}

static int measure_contest(const struct bench_job *job, struct bench_engine *b,
			   const struct bench_setup *setup, int count, bool waiting)
{
	struct bench_result *r = bench_lane_result(job, b, setup, BENCH_CONTEND, "bag of 20");
	int err;

	if (!r)
		return CLI_DEVICE;
	r->commands = r->in_flight = count;
	r->waiting = waiting;
	r->ids_per_step = (uint64_t)count * LANE_BAG;
	err = hold_contest(job, b, count, r);
	return err ? output_library_failure(job->out, err, NULL) : 0;
}

static int measure_contests(const struct bench_job *job, struct bench_engine *b,
			    const struct bench_setup *setup)
{
	int code = 0;

	for (int count = 1; !code && count <= PRODUCERS; count *= 2) {
		code = measure_contest(job, b, setup, count, false);
		code = code ? code : measure_contest(job, b, setup, count, true);
	}
	return code;
}

int bench_contention(const struct bench_job *job)
{
	return bench_with_lanes(job, PRODUCERS, measure_contests);
}
