/* SPDX-License-Identifier: MIT */
/* The answer of one check, with a sentence and, where there is one, a number and its limit. */
#ifndef CLI_BOARD_FINDING_H
#define CLI_BOARD_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#define FINDING_TEXT 512

/**
 * enum outcome - the result of a check
 * @OUTCOME_PASSED: it proved what it is meant to prove
 * @OUTCOME_FAILED: the device does not do what it must
 * @OUTCOME_SKIPPED: the check has no meaning here, or its caller did not allow it
 * @OUTCOME_NOT_RUN: it would have said nothing, because something else failed or it was interrupted
 */
enum outcome {
	OUTCOME_PASSED,
	OUTCOME_FAILED,
	OUTCOME_SKIPPED,
	OUTCOME_NOT_RUN,
	OUTCOMES,
};

/* The word for an outcome: "passed", "failed", "skipped" or "not run". */
const char *outcome_word(enum outcome outcome);

/**
 * struct finding - the answer of a check; zeroed, it has passed
 * @text: a sentence without a full stop, or ""
 * @unit: unit of the next two, or NULL if the check measured nothing
 * @measured: the number that was measured
 * @limit: the number that it is held against
 */
struct finding {
	enum outcome outcome;
	char text[FINDING_TEXT];
	const char *unit;
	double measured, limit;
};

/* Whether nothing stands against going on with the check. */
static inline bool finding_good(const struct finding *f)
{
	return f->outcome == OUTCOME_PASSED;
}

/* The first of these on a finding that has passed so far decides it; later ones change nothing. */
void finding_fail(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_skip(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_not_run(struct finding *f, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Says more about a finding that has passed so far. */
void finding_note(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes the number that the check goes by. */
void finding_figure(struct finding *f, double measured, double limit, const char *unit);

/* Fails with the library's sentence for a call that returned @err. Return: true if @err is an error. */
bool finding_library(struct finding *f, int err, const char *what);

/* Ends a check that was interrupted as not run. Return: whether it was. */
bool finding_interrupted(struct finding *f);

#endif
