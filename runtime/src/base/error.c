// SPDX-License-Identifier: MIT
/*
 * The last error of each thread: its code, the engine's status and a sentence. A sentence that is
 * too long is cut with a mark, and not inside a character.
 *
 * The error lives as long as its thread. No lock is needed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

static _Thread_local struct embeng_error last = {.size = sizeof(last)};

/* A cut sentence says so, and is not cut inside of a character. */
static void mark_cut(char *text, size_t size)
{
	static const char mark[] = "...";
	size_t end = size - sizeof(mark);

	while (end && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	memcpy(text + end, mark, sizeof(mark));
}

int error_set(int code, unsigned int status, const char *fmt, ...)
{
	/* not into last.text at once: an argument may be the last sentence itself */
	char text[EMBENG_ERROR_TEXT];
	va_list args;
	int length;

	va_start(args, fmt);
	length = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (length < 0)
		text[0] = '\0';
	else if ((size_t)length >= sizeof(text))
		mark_cut(text, sizeof(text));
	memcpy(last.text, text, sizeof(text));
	last.code = code;
	last.status = status;
	return code;
}

void embeng_last_error(struct embeng_error *error)
{
	const size_t text_at = offsetof(struct embeng_error, text);
	size_t size, room;

	if (!error || error->size < text_at)
		return;
	size = error->size < sizeof(last) ? error->size : sizeof(last);
	room = size - text_at;
	memcpy((char *)error + sizeof(error->size), (const char *)&last + sizeof(last.size),
	       size - sizeof(last.size));
	if (room)
		((char *)error)[text_at + room - 1] = '\0';
}
