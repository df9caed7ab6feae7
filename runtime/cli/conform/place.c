// SPDX-License-Identifier: MIT
/*
 * Says what is wrong with a vector and where in its file, such as "steps[2].enqueue: ...".
 *
 * The text goes into memory of the caller, which is kept in a static variable while a file is
 * checked; one thread checks files.
 */
#include <stdarg.h>
#include <stdio.h>

#include "file.h"
#include "place.h"

static void write_place(FILE *out, const struct vector_place *place)
{
	if (!place)
		return;
	write_place(out, place->above);
	if (place->key)
		fprintf(out, "%s%s", place->above ? "." : "", place->key);
	else
		fprintf(out, "[%zu]", place->index);
}

static char *error_text;

void vector_malformed_into(char *text)
{
	error_text = text;
}

int vector_malformed(const struct vector_place *place, const char *format, ...)
{
	FILE *out = fmemopen(error_text, VECTOR_ERROR_TEXT, "w");
	va_list args;

	if (!out)
		return -1;
	write_place(out, place);
	fputs(place ? ": " : "", out);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fclose(out);
	error_text[VECTOR_ERROR_TEXT - 1] = '\0';
	return -1;
}
