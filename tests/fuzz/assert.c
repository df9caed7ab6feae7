// SPDX-License-Identifier: MIT
/*
 * Assertions of Check in programs without its library: fuzzers, and ranks that a launcher starts. One that
 * fails is told, and ends the process.
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
