// SPDX-License-Identifier: MIT
/* Rows at random and in order, by several threads, each on a processor. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_limits.h"
#include "bench_memory.h"
#include "machine.h"
#include "random.h"

#define HUGE_PAGE ((size_t)2 << 20)
/* Bytes of rows that a run moves. */
#define TRAFFIC ((size_t)512 << 20)
/* ... and reads in order, of as many as there are. */
#define STREAM ((size_t)2 << 30)

enum test { TEST_GATHER, TEST_GATHER_NEAR, TEST_RMW, TEST_STREAM };

/**
 * struct arena - the memory, and what the threads do with it
 * @rows: [row_count][row_bytes]
 * @index: [index_count + MEMORY_AHEAD] rows, at random
 * @out: sums of a gather
 * @ahead: rows fetched ahead
 * @gate: threads go on at 1 and end at -1
 */
struct arena {
	const struct memory_loops *loops;
	char *rows, *out;
	uint32_t *index;
	size_t row_bytes, bytes, index_count, out_bytes, index_bytes, ahead;
	int threads, rounds;
	int gate;
	enum test test;
	const int *cpus;
	int cpu_count;
	pthread_barrier_t barrier;
};

/* Each takes its times itself: on a busy processor another thread would be late to. */
struct worker {
	struct arena *arena;
	pthread_t thread;
	int number;
	float sum;
	double began[RUNS_MOST + 1], ended[RUNS_MOST + 1];
};

/* Written, so that every page is there. */
static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static size_t rounded(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static void fill_index(struct arena *a)
{
	struct random r = {.state = 88172645463325252ull};

	for (size_t k = 0; k < a->index_count + MEMORY_AHEAD; k++)
		a->index[k] = random_below(&r, a->bytes / a->row_bytes);
}

static void unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

static void arena_free(struct arena *a)
{
	unmap(a->rows, rounded(a->bytes, HUGE_PAGE));
	unmap(a->index, a->index_bytes);
	unmap(a->out, a->out_bytes);
}

static int arena_make(struct arena *a, const struct bench_limits *l, double effort)
{
	size_t rows;

	a->loops = memory_loops();
	a->threads = l->threads;
	a->row_bytes = rounded(l->row_bytes, 64);
	rows = l->table_bytes / a->row_bytes;
	a->bytes = rounded((rows ? rows : 1) * a->row_bytes, 4096 * (size_t)l->threads);
	a->index_count = rounded((size_t)((double)TRAFFIC * effort) / a->row_bytes + 1,
				 MEMORY_POOL * (size_t)l->threads);
	a->index_bytes = rounded((a->index_count + MEMORY_AHEAD) * sizeof(*a->index), HUGE_PAGE);
	a->out_bytes = rounded(a->index_count / MEMORY_POOL * a->row_bytes, HUGE_PAGE);
	a->rows = map(rounded(a->bytes, HUGE_PAGE));
	a->index = map(a->index_bytes);
	a->out = map(a->out_bytes);
	if (a->rows && a->index && a->out) {
		fill_index(a);
		return 0;
	}
	arena_free(a);
	return -ENOMEM;
}

static size_t stream_bytes(const struct arena *a)
{
	return (a->bytes < STREAM ? a->bytes : STREAM) / (size_t)a->threads / 4096 * 4096;
}

static void work(struct worker *w)
{
	const struct arena *a = w->arena;
	size_t share = a->index_count / (size_t)a->threads, from = share * (size_t)w->number;
	char *out = a->out + from / MEMORY_POOL * a->row_bytes;

	if (a->test == TEST_GATHER)
		a->loops->gather(a->rows, a->row_bytes, a->index + from, share, a->ahead, out);
	else if (a->test == TEST_GATHER_NEAR)
		a->loops->gather_near(a->rows, a->row_bytes, a->index + from, share, a->ahead,
				      out);
	else if (a->test == TEST_RMW)
		a->loops->rmw(a->rows, a->row_bytes, a->index + from, share, a->ahead);
	else
		w->sum += a->loops->stream(a->rows + stream_bytes(a) * (size_t)w->number,
					   stream_bytes(a));
}

/* Rounds begin when all threads are there; without one of them none begins. */
static int gate_wait(struct arena *a)
{
	int gate;

	while (!(gate = __atomic_load_n(&a->gate, __ATOMIC_ACQUIRE)))
		sched_yield();
	return gate;
}

static void *serve(void *arg)
{
	struct worker *w = arg;

	machine_pin(&w->arena->cpus[w->number % w->arena->cpu_count], 1);
	if (gate_wait(w->arena) < 0)
		return NULL;
	for (int k = 0; k < w->arena->rounds; k++) {
		pthread_barrier_wait(&w->arena->barrier);
		w->began[k] = now_ms();
		work(w);
		w->ended[k] = now_ms();
	}
	return NULL;
}

/* From the first to begin to the last to end. */
static void round_times(const struct worker *workers, const struct arena *a, double *ms)
{
	for (int k = 0; k < a->rounds; k++) {
		double began = workers[0].began[k], ended = workers[0].ended[k];

		for (int t = 1; t < a->threads; t++) {
			began = workers[t].began[k] < began ? workers[t].began[k] : began;
			ended = workers[t].ended[k] > ended ? workers[t].ended[k] : ended;
		}
		ms[k] = ended - began;
	}
}

static int run_workers(struct arena *a, struct worker *workers)
{
	int err = 0, started = 0;

	a->gate = 0;
	pthread_barrier_init(&a->barrier, NULL, (unsigned int)a->threads);
	while (!err && started < a->threads) {
		workers[started].arena = a;
		workers[started].number = started;
		err = pthread_create(&workers[started].thread, NULL, serve, &workers[started]);
		started += !err;
	}
	__atomic_store_n(&a->gate, err ? -1 : 1, __ATOMIC_RELEASE);
	while (started)
		pthread_join(workers[--started].thread, NULL);
	pthread_barrier_destroy(&a->barrier);
	return -err;
}

/* Milliseconds of each of @rounds. */
static int run(struct arena *a, enum test test, int rounds, double *ms)
{
	struct worker *workers = calloc((size_t)a->threads, sizeof(*workers));
	int err;

	if (!workers)
		return -ENOMEM;
	a->test = test;
	a->rounds = rounds;
	err = run_workers(a, workers);
	if (!err)
		round_times(workers, a, ms);
	free(workers);
	return err;
}

/* How far ahead rows are best fetched, by a short try of each. */
static int calibrate(struct arena *a, enum test test, double *least)
{
	static const size_t tries[] = {8, 16, 32, 48, MEMORY_AHEAD};
	double ms[3];
	size_t ahead = 0;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		int err;

		a->ahead = tries[i];
		err = run(a, test, 3, ms);
		if (err)
			return err;
		if (!ahead || spread_of(ms, 3).min < *least) {
			*least = spread_of(ms, 3).min;
			ahead = tries[i];
		}
	}
	a->ahead = ahead;
	return 0;
}

/* ... and into which cache. */
static int calibrate_gather(struct arena *a, enum test *test)
{
	double far, near;
	size_t ahead;
	int err = calibrate(a, TEST_GATHER, &far);

	ahead = a->ahead;
	err = err ? err : calibrate(a, TEST_GATHER_NEAR, &near);
	if (err)
		return err;
	*test = near < far ? TEST_GATHER_NEAR : TEST_GATHER;
	a->ahead = near < far ? a->ahead : ahead;
	return 0;
}

/* @amount a second of each run, after one that is not counted. */
static int rates(struct arena *a, enum test test, int runs, double amount, struct spread *rate)
{
	double ms[RUNS_MOST + 1];
	int err = run(a, test, runs + 1, ms);

	if (err)
		return err;
	for (int k = 0; k < runs; k++)
		ms[k] = amount / ms[k + 1] * 1e3;
	*rate = spread_of(ms, runs);
	return 0;
}

static int measure(struct arena *a, struct bench_limits *l, int runs)
{
	enum test gather = TEST_GATHER;
	double least;
	int err = calibrate_gather(a, &gather);

	err = err ? err : rates(a, gather, runs, (double)a->index_count, &l->gather);
	err = err ? err : calibrate(a, TEST_RMW, &least);
	err = err ? err : rates(a, TEST_RMW, runs, (double)a->index_count, &l->rmw);
	return err ? err
		   : rates(a, TEST_STREAM, runs, (double)stream_bytes(a) * (double)a->threads,
			   &l->stream);
}

int bench_limits_measure(struct bench_limits *l, const int *cpus, int cpu_count, int runs,
			 double effort)
{
	struct arena a = {.cpus = cpus, .cpu_count = cpu_count};
	int err = arena_make(&a, l, effort);

	if (err)
		return err;
	l->row_bytes = a.row_bytes;
	l->table_bytes = a.bytes;
	l->vectors = a.loops->name;
	err = measure(&a, l, runs);
	arena_free(&a);
	l->paired = cpu_count > 1;
	return err || !l->paired ? err : bench_latency_measure(l, cpus, runs, effort);
}
