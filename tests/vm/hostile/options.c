// SPDX-License-Identifier: MIT
/*
 * Reads the options of a hostile test (how long it runs, and from which seed) and runs its suite.
 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../../unit/support/suite.h"

/* For what comes around the seconds: an instrumented kernel takes its time. */
#define PATIENCE 600

struct options options;

static void (*add_tests)(TCase *tcase);

static void add(TCase *tcase)
{
	tcase_set_timeout(tcase, options.seconds + PATIENCE);
	add_tests(tcase);
}

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s [--seconds N] [--seed N]\n", program);
	return 2;
}

int hostile_main(int argc, char **argv, const char *name, unsigned int seconds,
		 void (*tests)(TCase *tcase))
{
	static const struct option names[] = {{"seconds", required_argument, NULL, 's'},
					      {"seed", required_argument, NULL, 'r'},
					      {0}};
	int c;

	options.seconds = seconds;
	options.seed = (uint64_t)time(NULL);
	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		char *end;
		unsigned long long value = optarg ? strtoull(optarg, &end, 0) : 0;

		if (c == '?' || *end || end == optarg)
			return usage(argv[0]);
		if (c == 's')
			options.seconds = (unsigned int)value;
		else
			options.seed = value;
	}
	if (optind != argc)
		return usage(argv[0]);
	printf("# %s: seed %llu, %u s\n", name, (unsigned long long)options.seed, options.seconds);
	fflush(stdout);
	add_tests = tests;
	return suite_main(name, add);
}
