/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_TESTS_DIRECT_MAIN_H
#define EMBENG_TESTS_DIRECT_MAIN_H

#include "suite.h"

/* Runs the tests of one file, a list of functions ended by NULL. */
static inline int direct_main(const char *name, const TTest *const *tests)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create(name);

	for (; *tests; tests++)
		tcase_add_test(all, *tests);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}

#endif
