// SPDX-License-Identifier: MIT
/*
 * Fills in what a check found. The first thing that stands against a check is the one that is
 * reported, since what comes after it is often its consequence.
 *
 * A finding belongs to its caller; nothing is kept here.
 */
#include "finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "embeng.h"

#include "../frame/interrupt.h"

const char *outcome_word(enum outcome outcome)
{
	static const char *const words[OUTCOMES] = {"passed", "failed", "skipped", "not run"};

	return words[outcome];
}

static void decide_finding(struct finding *f, enum outcome outcome, const char *format,
			   va_list args)
{
	if (!finding_good(f))
		return;
	f->outcome = outcome;
	vsnprintf(f->text, sizeof(f->text), format, args);
}

void finding_fail(struct finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	decide_finding(f, OUTCOME_FAILED, format, args);
	va_end(args);
}

void finding_skip(struct finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	decide_finding(f, OUTCOME_SKIPPED, format, args);
	va_end(args);
}

void finding_not_run(struct finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	decide_finding(f, OUTCOME_NOT_RUN, format, args);
	va_end(args);
}

void finding_note(struct finding *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	decide_finding(f, OUTCOME_PASSED, format, args);
	va_end(args);
}

void finding_figure(struct finding *f, double measured, double limit, const char *unit)
{
	f->measured = measured;
	f->limit = limit;
	f->unit = unit;
}

bool finding_library(struct finding *f, int err, const char *what)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	if (err >= 0)
		return false;
	embeng_last_error(&error);
	finding_fail(f, "%s: %.400s", what, error.text);
	return true;
}

bool finding_interrupted(struct finding *f)
{
	if (interrupted())
		finding_not_run(f, "interrupted");
	return interrupted();
}
