/* SPDX-License-Identifier: MIT */
/* What the machine gives, whatever runs on it. */
#ifndef CLI_BENCH_LIMITS_H
#define CLI_BENCH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "memory.h"

/**
 * struct bench_limits - limits of one row length, table memory and thread count
 * @row_bytes: of a row
 * @table_bytes: that rows were taken from, at random, in huge pages where there are any
 * @vectors: that the loops were made for
 * @gather_fetch: where rows are best fetched
 * @gather_ahead: so many rows before their turn
 * @rmw_fetch: as @gather_fetch, those that are changed
 * @rmw_ahead: so many of them
 * @gather: rows a second, read and added up
 * @rmw: rows a second, read, changed and written
 * @stream: bytes a second, read in order
 * @paired: there are two processors, so the next two are known
 * @cache_line_us: round trip of a cache line between two processors
 * @futex_us: round trip of two threads that wake each other
 */
struct bench_limits {
	size_t row_bytes;
	uint64_t table_bytes;
	int threads;
	const char *vectors;
	enum memory_fetch gather_fetch, rmw_fetch;
	size_t gather_ahead, rmw_ahead;
	struct spread gather, rmw, stream;
	bool paired;
	struct spread cache_line_us, futex_us;
};

/**
 * bench_limits_measure() - measure all of them
 * @l: its row_bytes, table_bytes and threads set by the caller
 * @cpus: [@cpu_count] to run on, at least one; thread t on cpus[t % cpu_count]
 * @effort: 1: as long as figures want; less for tests
 *
 * Return: 0 or a negative errno.
 */
int bench_limits_measure(struct bench_limits *l, const int *cpus, int cpu_count, int runs,
			 double effort);

struct bench_beside;

/**
 * bench_beside_open() - make ready to take limits between the runs of something else
 * @known: measured before, so that how rows are best fetched is known; @cpus as there
 *
 * What else runs on the machine comes and goes within seconds: limits of the same seconds are
 * those that a run could have reached. Holds as much memory as @known says, or most of what is
 * left.
 *
 * Return: what bench_beside_close() frees, or NULL: out of memory.
 */
struct bench_beside *bench_beside_open(const struct bench_limits *known, const int *cpus,
				       int cpu_count, double effort);

/* Takes gather and rmw once, at most RUNS_MOST times. 0 or a negative errno. */
int bench_beside_run(struct bench_beside *b);

/* @out: @known with what was taken instead; not written without @b. */
void bench_beside_close(struct bench_beside *b, struct bench_limits *out);

/* latency.c: the round trips between cpus[0] and cpus[1]. */
int bench_latency_measure(struct bench_limits *l, const int cpus[2], int runs, double effort);

#endif
