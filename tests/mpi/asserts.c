// SPDX-License-Identifier: MIT
/*
 * Assertions of Check in programs that a launcher starts, and not Check: one that fails is told, and ends the
 * process. Linked in place of Check, by the linker's --wrap.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <check.h>

void __wrap__mark_point(const char *file, int line);
void __wrap__ck_assert_failed(const char *file, int line, const char *expr, const char *msg,
			      ...) CK_ATTRIBUTE_NORETURN CK_ATTRIBUTE_FORMAT(printf, 4, 5);

void __wrap__mark_point(const char *file, int line)
{
	(void)file;
	(void)line;
}

void __wrap__ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: %s: ", file, line, expr);
	va_start(args, msg);
	if (msg)
		vfprintf(stderr, msg, args);
	va_end(args);
	fputc('\n', stderr);
	_Exit(6);
}
