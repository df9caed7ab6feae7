/* SPDX-License-Identifier: MIT */
/* The clock for measurements, and the median of some runs. */
#ifndef CLI_BENCH_CLOCK_H
#define CLI_BENCH_CLOCK_H

#include <stdlib.h>
#include <time.h>

#define RUNS_LEAST 5
#define RUNS_MOST 101

struct spread {
	double min, median, max;
};

static inline double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline int runs_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts @values and returns their spread. */
static inline struct spread spread_of(double *values, int runs)
{
	qsort(values, (size_t)runs, sizeof(values[0]), runs_by_value);
	return (struct spread){values[0], values[runs / 2], values[runs - 1]};
}

#endif
