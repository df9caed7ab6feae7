/* SPDX-License-Identifier: MIT */
/* Memory that is read and changed at random or in order, by several threads at once. */
#ifndef CLI_BENCH_ARENA_H
#define CLI_BENCH_ARENA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"
#include "memory.h"

enum arena_test { TEST_GATHER, TEST_RMW, TEST_STREAM };

/**
 * struct arena - the memory, and what the threads do with it
 * @rows: [row_count][row_bytes]
 * @index: [index_count + MEMORY_BEYOND] rows, at random
 * @out: sums of a gather
 * @ahead: rows fetched ahead
 * @fetch: where they go
 * @gate: threads go on at 1 and end at -1
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

/* Of @l's rows, bytes and threads; @cpus stay the caller's. 0 or -ENOMEM. */
int arena_open(struct arena *a, const struct bench_limits *l, const int *cpus, int cpu_count,
	       double effort);
void arena_close(struct arena *a);

/* Milliseconds of each of @rounds, at most RUNS_MOST + 1. 0 or a negative errno. */
int arena_run(struct arena *a, enum arena_test test, int rounds, double *ms);

/* What one round of a test moves: rows, or bytes of TEST_STREAM. */
double arena_amount(const struct arena *a, enum arena_test test);

#endif
