// SPDX-License-Identifier: MIT
/*
 * Reads a stream line by line, and words errors about it with the file and the line.
 *
 * The line belongs to the struct source and is overwritten by the next one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

static void word_error(struct source *s, const char *format, va_list args)
{
	char what[400];

	vsnprintf(what, sizeof(what), format, args);
	snprintf(s->error, sizeof(s->error), "%.80s:%llu: %s", s->name, (unsigned long long)s->line,
		 what);
}

int source_malformed(struct source *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	word_error(s, format, args);
	va_end(args);
	return -EBADMSG;
}

int source_line(struct source *s)
{
	ssize_t length;

	if (s->again) {
		s->again = false;
		return 1;
	}
	errno = 0;
	length = getline(&s->text, &s->capacity, s->stream);
	if (length < 0) {
		int err = errno;

		if (feof(s->stream) && !err)
			return 0;
		err = err ? err : EIO;
		snprintf(s->error, sizeof(s->error), "%.80s: %s", s->name, strerror(err));
		return -err;
	}
	s->line++;
	if (memchr(s->text, '\0', (size_t)length))
		return source_malformed(s, "the line has a NUL byte; the file must be text");
	if (length && s->text[length - 1] == '\n')
		length--;
	if (length && s->text[length - 1] == '\r')
		length--;
	s->text[length] = '\0';
	s->length = (size_t)length;
	return 1;
}

void source_free(struct source *s)
{
	free(s->text);
	s->text = NULL;
	s->capacity = 0;
}
