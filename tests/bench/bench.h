/* SPDX-License-Identifier: MIT */
/* Code that the measuring programs of this folder share, beside runtime/cli/bench/clock.h. */
#ifndef EMBENG_TESTS_BENCH_H
#define EMBENG_TESTS_BENCH_H

#include <stdio.h>

#include "embeng.h"

#include "../../runtime/cli/bench/clock.h"

/* Ends the program when a call failed. */
static inline void check(int rc)
{
	struct embeng_error err = {.size = sizeof(err)};

	if (rc >= 0)
		return;
	embeng_last_error(&err);
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

/* @ids are looked up in each run. */
static inline void spread_print(const char *what, struct spread s, double ids)
{
	printf("%-14s %7.2f / %7.2f / %7.2f ms a step (min/median/max), %6.1f M ids/s\n", what,
	       s.min, s.median, s.max, ids / s.median / 1e3);
}

#endif
