/* SPDX-License-Identifier: MIT */
/* Limits that the machine sets to any program. */
#ifndef CLI_BENCH_LIMITS_H
#define CLI_BENCH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "memory.h"

/**
 * struct bench_limits - limits for one row length, table memory and number of threads
 * @row_bytes: bytes of a row
 * @table_bytes: bytes of the memory that random rows were read from, in huge pages if possible
 * @vectors: vector extension that the loops were compiled for
 * @gather_fetch: the best way to fetch rows ahead for a gather
 * @gather_ahead: the best number of rows to fetch ahead for a gather
 * @rmw_fetch: the best way to fetch rows ahead that are changed
 * @rmw_ahead: the best number of rows to fetch ahead that are changed
 * @gather: rows per second that are read and added up
 * @rmw: rows per second that are read, changed and written
 * @stream: bytes per second that are read in order
 * @paired: there are two processors, so that the next two members are set
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
 * bench_limits_measure() - measure all limits
 * @l: limits; the caller sets row_bytes, table_bytes and threads
 * @cpus: [@cpu_count] processors to run on, at least one; thread t runs on cpus[t % cpu_count]
 * @effort: 1 for reliable figures; less makes tests shorter
 *
 * Return: 0 or a negative errno.
 */
int bench_limits_measure(struct bench_limits *l, const int *cpus, int cpu_count, int runs,
			 double effort);

struct bench_beside;

/**
 * bench_beside_open() - prepare to measure limits between the runs of another measurement
 * @known: limits that were measured before, with the best ways to fetch
 *
 * The load of other processes changes within seconds, so a run is compared with limits that were
 * measured in the same seconds. This holds as much memory as @known says, or most of what is left.
 *
 * Return: a handle that bench_beside_close() frees, or NULL without memory.
 */
struct bench_beside *bench_beside_open(const struct bench_limits *known, const int *cpus,
				       int cpu_count, double effort);

/* Measures gather and rmw once; to be called at most RUNS_MOST times. 0 or a negative errno. */
int bench_beside_run(struct bench_beside *b);

/* Ends it. @out becomes @known with the new figures; it stays as it is if @b is NULL. */
void bench_beside_close(struct bench_beside *b, struct bench_limits *out);

/* latency.c: measures the round trips between cpus[0] and cpus[1]. */
int bench_latency_measure(struct bench_limits *l, const int cpus[2], int runs, double effort);

#endif
