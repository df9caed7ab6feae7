/* SPDX-License-Identifier: MIT */
/* A text file that is read line by line. Errors name the file and the line. */
#ifndef ITEM2VEC_DATA_SOURCE_H
#define ITEM2VEC_DATA_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "format.h"

/**
 * struct source - a stream and its position
 * @stream: stream to read from
 * @name: name of the file, for messages
 * @format: how its lines are divided
 * @line: number of the last line read
 * @text: [length] that line without its end, NUL-terminated
 * @ahead: [ahead_count] lines that source_peek() has read; those from @ahead_next on are still to
 *	be returned by source_line()
 * @error: sentence of a failure
 */
struct source {
	FILE *stream;
	const char *name;
	struct format format;
	uint64_t line;
	char *text;
	size_t length, capacity;
	char **ahead;
	size_t ahead_count, ahead_next;
	char error[512];
};

/**
 * source_line() - read a line
 *
 * A byte order mark of UTF-8 before the first line is left out. Other encodings, compressed files
 * and lines with a NUL byte are refused. Return: 1; 0 at the end; -EBADMSG; -ENOMEM; or the errno of
 * a failed read.
 */
int source_line(struct source *s);

/**
 * source_peek() - read lines ahead, to look at them in @s->ahead
 * @most: number of lines
 *
 * To be called before the first source_line(), which returns these lines again. Return: 0, or as
 * source_line().
 */
int source_peek(struct source *s, size_t most);

/* Writes "NAME:LINE: ..." to @s->error. Return: -EBADMSG. */
int source_malformed(struct source *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void source_free(struct source *s);

/* Arguments for "%.*s" that print at most 60 bytes of a piece. */
#define PIECE_SHOWN(p) (int)((p).length < 60 ? (p).length : 60), (p).text

#endif
