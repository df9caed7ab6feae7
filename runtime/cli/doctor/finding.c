// SPDX-License-Identifier: MIT
/*
 * Fills in findings. It is apart from the checks so that each of these is a few lines that say what
 * they look at. A text that is too long is cut; nothing is kept.
 */
#include "finding.h"

#include <stdarg.h>
#include <stdio.h>

#define WRITE_TEXT(to, format) \
	do { \
		va_list args; \
\
		va_start(args, format); \
		(void)vsnprintf(to, FINDING_TEXT, format, args); \
		va_end(args); \
	} while (0)

void found_ok(struct finding *f, const char *format, ...)
{
	f->verdict = VERDICT_OK;
	WRITE_TEXT(f->seen, format);
}

void found_warning(struct finding *f, const char *format, ...)
{
	f->verdict = VERDICT_WARNING;
	WRITE_TEXT(f->seen, format);
}

void found_problem(struct finding *f, enum cli_exit code, const char *format, ...)
{
	f->verdict = VERDICT_PROBLEM;
	f->exit_code = (int)code;
	f->stops = true;
	WRITE_TEXT(f->seen, format);
}

void found_nothing(struct finding *f, const char *format, ...)
{
	f->verdict = VERDICT_NOT_CHECKED;
	WRITE_TEXT(f->seen, format);
}

void found_why(struct finding *f, const char *format, ...)
{
	WRITE_TEXT(f->why, format);
}

void found_fix(struct finding *f, const char *format, ...)
{
	WRITE_TEXT(f->fix, format);
}
