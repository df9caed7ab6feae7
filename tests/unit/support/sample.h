/* SPDX-License-Identifier: MIT */
/*
 * A sample of a long loop test. ThreadSanitizer sees how threads meet, not what they compute, and the
 * rounds of such a loop differ in what is computed: it runs every third one, and the next third on the
 * next day. All other builds run all rounds, and so does ThreadSanitizer if EMBENG_TEST_WHOLE is set,
 * as `check.py --whole` sets it.
 */
#ifndef EMBENG_TESTS_SAMPLE_H
#define EMBENG_TESTS_SAMPLE_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#ifdef __SANITIZE_THREAD__
#define SAMPLE_OF_THREADS true
#else
#define SAMPLE_OF_THREADS false
#endif

#define SAMPLE_SHARE 3

static inline bool is_in_sample(int round)
{
	const int day = (int)(time(NULL) / 86400 % SAMPLE_SHARE);

	return !SAMPLE_OF_THREADS || getenv("EMBENG_TEST_WHOLE") || round % SAMPLE_SHARE == day;
}

/* Rounds @first to before @end of a loop test, those that are in the sample. */
static inline void add_sampled_loop(TCase *tcase, const TTest *test, int first, int end)
{
	for (int round = first; round < end; round++)
		if (is_in_sample(round))
			tcase_add_loop_test(tcase, test, round, round + 1);
}

#endif
