/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_TESTS_SUITE_H
#define EMBENG_TESTS_SUITE_H

#include <check.h>

/* Runs a suite as a program; returns its exit code. */
static inline int suite_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* Runs one test case as a program; returns its exit code. */
static inline int suite_main(const char *name, void (*add)(TCase *tcase))
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	add(tcase);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}

#endif
