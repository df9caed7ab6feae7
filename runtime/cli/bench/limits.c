// SPDX-License-Identifier: MIT
/*
 * Measures how many rows a second the machine's memory gives, at random and in order, and finds out
 * how they are best fetched. Benchmarks are compared with these limits.
 *
 * The arena is open while limits are measured, or beside a benchmark in a struct bench_beside.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "../frame/machine.h"
#include "arena.h"

/* One part in so many of the memory that is left stays free. */
#define SPARE 8

/* How rows were fetched, and the least time that a round took. */
struct tried {
	enum memory_fetch fetch;
	size_t ahead;
	double ms;
};

/* How far ahead rows are best fetched, by a short try of each; @best if it is better than that. */
static int calibrate_ahead(struct arena *a, enum arena_test test, struct tried *best)
{
	static const size_t tries[] = {8, 16, 32, 48, MEMORY_AHEAD};
	double ms[3];

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		int err;

		a->ahead = tries[i];
		err = arena_run(a, test, 3, ms);
		if (err)
			return err;
		if (spread_of(ms, 3).min < best->ms)
			*best = (struct tried){a->fetch, tries[i], spread_of(ms, 3).min};
	}
	return 0;
}

/* Finds how far ahead, and into which cache, rows are best fetched, by all loops that there are. */
static int calibrate_all(struct arena *a, enum arena_test test, enum memory_fetch *best_fetch,
			 size_t *best_ahead)
{
	struct tried best = {.ms = INFINITY};
	int err = 0;

	for (int fetch = 0; !err && fetch < MEMORY_FETCHES; fetch++) {
		a->fetch = (enum memory_fetch)fetch;
		if (test != TEST_RMW || a->loops->rmw[fetch])
			err = calibrate_ahead(a, test, &best);
	}
	*best_fetch = best.fetch;
	*best_ahead = best.ahead;
	return err;
}

/* Measures the rate of each of @runs rounds, after one that is not counted. */
static int measure_rates(struct arena *a, enum arena_test test, enum memory_fetch fetch,
			 size_t ahead, int runs, double *rate)
{
	double ms[RUNS_MOST + 1];
	int err;

	a->fetch = fetch;
	a->ahead = ahead;
	err = arena_run(a, test, runs + 1, ms);
	for (int k = 0; !err && k < runs; k++)
		rate[k] = arena_amount(a, test) / ms[k + 1] * 1e3;
	return err;
}

static int measure_rows(struct arena *a, const struct bench_limits *l, int runs, double *gather,
			double *rmw)
{
	int err = measure_rates(a, TEST_GATHER, l->gather_fetch, l->gather_ahead, runs, gather);

	return err ? err : measure_rates(a, TEST_RMW, l->rmw_fetch, l->rmw_ahead, runs, rmw);
}

static int measure_arena(struct arena *a, struct bench_limits *l, int runs)
{
	double gather[RUNS_MOST], rmw[RUNS_MOST], stream[RUNS_MOST];
	int err = calibrate_all(a, TEST_GATHER, &l->gather_fetch, &l->gather_ahead);

	err = err ? err : calibrate_all(a, TEST_RMW, &l->rmw_fetch, &l->rmw_ahead);
	err = err ? err : measure_rows(a, l, runs, gather, rmw);
	err = err ? err : measure_rates(a, TEST_STREAM, MEMORY_SECOND, 0, runs, stream);
	if (err)
		return err;
	l->gather = spread_of(gather, runs);
	l->rmw = spread_of(rmw, runs);
	l->stream = spread_of(stream, runs);
	return 0;
}

static int open_for(struct arena *a, struct bench_limits *l, const int *cpus, int cpu_count,
		    double effort)
{
	int err = arena_open(a, l, cpus, cpu_count, effort);

	l->row_bytes = a->row_bytes;
	l->table_bytes = a->bytes;
	l->vectors = a->loops->name;
	return err;
}

int bench_limits_measure(struct bench_limits *l, const int *cpus, int cpu_count, int runs,
			 double effort)
{
	struct arena a;
	int err = open_for(&a, l, cpus, cpu_count, effort);

	if (err)
		return err;
	err = measure_arena(&a, l, runs);
	arena_close(&a);
	l->paired = cpu_count > 1;
	return err || !l->paired ? err : bench_latency_measure(l, cpus, runs, effort);
}

/**
 * struct bench_beside - limits on their way
 * @limits: those measured before; what is taken now replaces gather and rmw
 * @runs: taken
 */
struct bench_beside {
	struct arena arena;
	struct bench_limits limits;
	int runs;
	double gather[RUNS_MOST], rmw[RUNS_MOST];
};

struct bench_beside *bench_beside_open(const struct bench_limits *known, const int *cpus,
				       int cpu_count, double effort)
{
	struct bench_beside *b = calloc(1, sizeof(*b));
	uint64_t available = machine_memory_available();
	int err;

	if (!b)
		return NULL;
	b->limits = *known;
	if (b->limits.table_bytes > available - available / SPARE)
		b->limits.table_bytes = available - available / SPARE;
	err = open_for(&b->arena, &b->limits, cpus, cpu_count, effort);
	if (!err)
		return b;
	free(b);
	return NULL;
}

int bench_beside_run(struct bench_beside *b)
{
	int err = measure_rows(&b->arena, &b->limits, 1, &b->gather[b->runs], &b->rmw[b->runs]);

	b->runs += !err;
	return err;
}

void bench_beside_close(struct bench_beside *b, struct bench_limits *out)
{
	if (!b)
		return;
	if (b->runs) {
		b->limits.gather = spread_of(b->gather, b->runs);
		b->limits.rmw = spread_of(b->rmw, b->runs);
	}
	*out = b->limits;
	arena_close(&b->arena);
	free(b);
}
