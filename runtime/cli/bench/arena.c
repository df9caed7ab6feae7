// SPDX-License-Identifier: MIT
/*
 * An arena: memory with rows that several threads read and change at random or in order, to find
 * out what the machine's memory gives.
 *
 * The memory lives from arena_open() to arena_close(), the threads for one arena_run(). Threads
 * start each round together at a barrier.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../frame/machine.h"
#include "../frame/random.h"
#include "arena.h"

#define HUGE_PAGE ((size_t)2 << 20)
/* Bytes of rows that a run moves. */
#define TRAFFIC ((size_t)512 << 20)
/* Most bytes that a run reads in order. */
#define STREAM ((size_t)2 << 30)

/* Each takes its times itself: on a busy processor another thread would be late to. */
struct worker {
	struct arena *arena;
	pthread_t thread;
	int number;
	float sum;
	double began[RUNS_MOST + 1], ended[RUNS_MOST + 1];
};

/* Written, so that every page is there. */
static void *map_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static size_t round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static void fill_index(struct arena *a)
{
	struct random r = {.state = 88172645463325252ull};

	for (size_t k = 0; k < a->index_count + MEMORY_BEYOND; k++)
		a->index[k] = random_below(&r, a->bytes / a->row_bytes);
}

static void unmap_pages(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

void arena_close(struct arena *a)
{
	unmap_pages(a->rows, round_up(a->bytes, HUGE_PAGE));
	unmap_pages(a->index, a->index_bytes);
	unmap_pages(a->out, a->out_bytes);
}

int arena_open(struct arena *a, const struct bench_limits *l, const int *cpus, int cpu_count,
	       double effort)
{
	size_t rows;

	*a = (struct arena){.cpus = cpus, .cpu_count = cpu_count};
	a->loops = memory_loops();
	a->threads = l->threads;
	a->row_bytes = round_up(l->row_bytes, 64);
	rows = l->table_bytes / a->row_bytes;
	a->bytes = round_up((rows ? rows : 1) * a->row_bytes, 4096 * (size_t)l->threads);
	a->index_count = round_up((size_t)((double)TRAFFIC * effort) / a->row_bytes + 1,
				  MEMORY_POOL * (size_t)l->threads);
	a->index_bytes = round_up((a->index_count + MEMORY_BEYOND) * sizeof(*a->index), HUGE_PAGE);
	a->out_bytes = round_up(a->index_count / MEMORY_POOL * a->row_bytes, HUGE_PAGE);
	a->rows = map_pages(round_up(a->bytes, HUGE_PAGE));
	a->index = map_pages(a->index_bytes);
	a->out = map_pages(a->out_bytes);
	if (a->rows && a->index && a->out) {
		fill_index(a);
		return 0;
	}
	arena_close(a);
	return -ENOMEM;
}

static size_t stream_bytes(const struct arena *a)
{
	return (a->bytes < STREAM ? a->bytes : STREAM) / (size_t)a->threads / 4096 * 4096;
}

static void run_round(struct worker *w)
{
	const struct arena *a = w->arena;
	size_t share = a->index_count / (size_t)a->threads, from = share * (size_t)w->number;
	char *out = a->out + from / MEMORY_POOL * a->row_bytes;

	if (a->test == TEST_GATHER)
		a->loops->gather[a->fetch](a->rows, a->row_bytes, a->index + from, share, a->ahead,
					   out);
	else if (a->test == TEST_RMW)
		a->loops->rmw[a->fetch](a->rows, a->row_bytes, a->index + from, share, a->ahead);
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

static void *serve_rounds(void *arg)
{
	struct worker *w = arg;

	machine_pin(&w->arena->cpus[w->number % w->arena->cpu_count], 1);
	if (gate_wait(w->arena) < 0)
		return NULL;
	for (int k = 0; k < w->arena->rounds; k++) {
		pthread_barrier_wait(&w->arena->barrier);
		w->began[k] = now_ms();
		run_round(w);
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
		err = pthread_create(&workers[started].thread, NULL, serve_rounds,
				     &workers[started]);
		started += !err;
	}
	__atomic_store_n(&a->gate, err ? -1 : 1, __ATOMIC_RELEASE);
	while (started)
		pthread_join(workers[--started].thread, NULL);
	pthread_barrier_destroy(&a->barrier);
	return -err;
}

int arena_run(struct arena *a, enum arena_test test, int rounds, double *ms)
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

double arena_amount(const struct arena *a, enum arena_test test)
{
	return test == TEST_STREAM ? (double)stream_bytes(a) * a->threads : (double)a->index_count;
}
