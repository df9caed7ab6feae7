/* SPDX-License-Identifier: MIT */
/* Test results as JUnit XML, the form that CI services show. */
#ifndef CLI_VM_JUNIT_H
#define CLI_VM_JUNIT_H

#include <stdio.h>

#include "tap_read.h"

/**
 * struct junit - a run of a program
 * @suite: name of the program
 * @status: its exit status
 * @seconds: how long it ran
 * @tap: its output
 */
struct junit {
	const char *suite;
	int status;
	double seconds;
	const struct tap *tap;
};

/**
 * junit_write() - write a run as one test suite
 *
 * Each test is a case. A program that broke its plan, gave up, or failed while no test did, has a
 * case more, with an error that says so. One that speaks no TAP has a single case, which fails if
 * its exit status is not 0. Bytes that XML does not allow become U+FFFD. Failed writes show in
 * @out's error flag.
 */
void junit_write(FILE *out, const struct junit *run);

#endif
