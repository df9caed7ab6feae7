/* SPDX-License-Identifier: MIT */
/* The result of one check, and the words with which checks say it. */
#ifndef CLI_DOCTOR_FINDING_H
#define CLI_DOCTOR_FINDING_H

#include <stdbool.h>

#include "../frame/exit.h"

#define FINDING_TEXT 640

enum verdict { VERDICT_OK, VERDICT_WARNING, VERDICT_PROBLEM, VERDICT_NOT_CHECKED };

/**
 * struct finding - the result of one check
 * @verdict: begins as VERDICT_OK
 * @exit_code: exit code of the command for a problem
 * @stops: checks that need this one are not made
 * @seen: the words for what the check saw, without a full stop
 * @why: why it matters; the check's own words in the table unless a function says it better
 * @fix: commands or advice that mend it; "" where there is nothing to mend
 */
struct finding {
	enum verdict verdict;
	int exit_code;
	bool stops;
	char seen[FINDING_TEXT], why[FINDING_TEXT], fix[FINDING_TEXT];
};

/* These set the verdict and what was seen. A problem stops the checks that need this one. */
void found_ok(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void found_warning(struct finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void found_problem(struct finding *f, enum cli_exit code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The machine does not tell, or the check does not apply to it. */
void found_nothing(struct finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* These add words to a finding. */
void found_why(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void found_fix(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
