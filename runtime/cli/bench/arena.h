/* SPDX-License-Identifier: MIT */
/* Memory that several threads read and change at once, at random or in order. */
#ifndef CLI_BENCH_ARENA_H
#define CLI_BENCH_ARENA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"
#include "memory.h"

enum arena_test { TEST_GATHER, TEST_RMW, TEST_STREAM };

/**
 * struct arena - the memory, and the work of the threads
 * @rows: [row_count][row_bytes]
 * @index: [index_count + MEMORY_BEYOND] random row numbers
 * @out: sums that a gather writes
 * @ahead: number of rows that are fetched ahead
 * @fetch: cache that they are fetched into
 * @gate: threads start at 1 and end at -1
 */
struct arena {
	const struct memory_loops *loops;
	char *rows, *out;
	uint32_t *index;
	size_t row_bytes, bytes, index_count, out_bytes, index_bytes, ahead;
	enum memory_fetch fetch;
	int threads, rounds;
	int gate;
	enum arena_test test;
	const int *cpus;
	int cpu_count;
	pthread_barrier_t barrier;
};

/* Makes an arena with the rows, bytes and threads of @l. The caller keeps @cpus. 0 or -ENOMEM. */
int arena_open(struct arena *a, const struct bench_limits *l, const int *cpus, int cpu_count,
	       double effort);
void arena_close(struct arena *a);

/* Runs a test @rounds times, at most RUNS_MOST + 1, and times each. 0 or a negative errno. */
int arena_run(struct arena *a, enum arena_test test, int rounds, double *ms);

/* Rows that one round of a test moves, or bytes for TEST_STREAM. */
double arena_amount(const struct arena *a, enum arena_test test);

#endif
