/* SPDX-License-Identifier: MIT */
/* Telling what a validation found: as a table, as TAP, or as one JSON document. */
#ifndef CLI_VALIDATE_REPORT_H
#define CLI_VALIDATE_REPORT_H

#include "../frame/output.h"
#include "../frame/progress.h"
#include "rounds.h"

/**
 * struct report - how to tell, and what was told
 * @tap: a line for each check as it ends
 * @number: number of the newest line of TAP
 * @stopped: why the last round was not followed by others that were asked for, or NULL
 * @seconds: time of all rounds
 */
struct report {
	const struct output *out;
	const struct validation *v;
	struct progress progress;
	bool tap;
	size_t number;
	const char *stopped;
	double seconds;
};

/* Begins to tell of the rounds of @v, whose device and seed are known. */
void report_begin(struct report *r, const struct validation *v, const struct output *out, bool tap);

/* The functions of &struct validation; @arg is the report. */
void report_check_begins(void *arg, size_t suite, size_t check);
void report_check_ends(void *arg, size_t suite, size_t check, const struct finding *f, double ms);

/* Tells the end: the table, the plan of TAP, or the document. Return: 0 or an exit code. */
int report_end(struct report *r);

#define REPORT_DURATION 32

/* Writes a time, such as "12 ms" or "3.4 s". */
const char *report_duration(double ms, char text[REPORT_DURATION]);

/* Lists all suites and sets, with what they prove and how long they take. */
int report_list(const struct output *out);

#endif
