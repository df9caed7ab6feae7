/* SPDX-License-Identifier: MIT */
/*
 * A sample of a long loop test. Its rounds differ in what is computed, which a build without sanitizers
 * compares. With one, the test runs every third round, and the next third on the next day, or all of
 * them if EMBENG_TEST_WHOLE is set, as `check.py --whole` sets it.
 */
#ifndef EMBENG_TESTS_SAMPLE_H
#define EMBENG_TESTS_SAMPLE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SAMPLE_WANTED true
#else
#define SAMPLE_WANTED false
#endif

#define SAMPLE_SHARE 3

static inline bool is_in_sample(int round)
{
	const int day = (int)(time(NULL) / 86400 % SAMPLE_SHARE);

	return !SAMPLE_WANTED || getenv("EMBENG_TEST_WHOLE") || round % SAMPLE_SHARE == day;
}

/* Rounds @first to before @end of a loop test, those that are in the sample. */
static inline void add_sampled_loop(TCase *tcase, const TTest *test, int first, int end)
{
	for (int round = first; round < end; round++)
		if (is_in_sample(round))
			tcase_add_loop_test(tcase, test, round, round + 1);
}

#endif
