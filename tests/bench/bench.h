/* SPDX-License-Identifier: MIT */
/* What every measuring program needs: numbers, the clock, and the middle of some runs. */
#ifndef EMBENG_TESTS_BENCH_H
#define EMBENG_TESTS_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "embeng.h"

#define MAX_RUNS 101

struct spread {
	double min, median, max;
};

/* Ends the program when a call failed. */
static inline void check(int rc)
{
	struct embeng_error err = { .size = sizeof(err) };

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

static inline double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the times of @runs. */
static inline struct spread spread_of(double *ms, int runs)
{
	qsort(ms, (size_t)runs, sizeof(ms[0]), by_value);
	return (struct spread){ ms[0], ms[runs / 2], ms[runs - 1] };
}

/* @ids are looked up in each run. */
static inline void spread_print(const char *what, struct spread s, double ids)
{
	printf("%-14s %7.2f / %7.2f / %7.2f ms a step (min/median/max), %6.1f M ids/s\n", what,
	       s.min, s.median, s.max, ids / s.median / 1e3);
}

#endif
