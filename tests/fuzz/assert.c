// SPDX-License-Identifier: MIT
/*
 * Assertions of the rig, which uses Check. In a fuzzer no test of Check runs, so a failed
 * assertion stops the fuzzer.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void _mark_point(const char *file, int line)
{
	(void)file;
	(void)line;
}

void _ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: %s: ", file, line, expr);
	va_start(args, msg);
	if (msg)
		vfprintf(stderr, msg, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}
