/* SPDX-License-Identifier: MIT */
/* How long a hostile test runs, and from which seed. */
#ifndef EMBENG_TESTS_HOSTILE_OPTIONS_H
#define EMBENG_TESTS_HOSTILE_OPTIONS_H

#include <check.h>
#include <stdint.h>

struct options {
	unsigned int seconds;
	uint64_t seed;
};

extern struct options options;

/*
 * Takes --seconds N (@seconds when not given) and --seed N, prints the seed and runs the
 * tests that @add adds, each with the seconds and some patience as its time limit.
 */
int hostile_main(int argc, char **argv, const char *name, unsigned int seconds,
		 void (*add)(TCase *tcase));

#endif
