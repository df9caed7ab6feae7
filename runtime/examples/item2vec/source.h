/* SPDX-License-Identifier: MIT */
/* A text file that is read line by line. Errors name the file and the line. */
#ifndef ITEM2VEC_DATA_SOURCE_H
#define ITEM2VEC_DATA_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dataset.h"

/**
 * struct source - a stream and its position
 * @stream: stream to read from
 * @name: name of the file, for messages
 * @line: number of the last line read
 * @text: [length] that line without its end, NUL-terminated
 * @again: the next source_line() returns the same line again
 * @error: sentence of a failure
 */
struct source {
	FILE *stream;
	const char *name;
	uint64_t line;
	char *text;
	size_t length, capacity;
	bool again;
	char error[512];
};

/* Reads a line. Return: 1; 0 at the end; -EBADMSG for a NUL; or the errno of a failed read. */
int source_line(struct source *s);

/* Writes "NAME:LINE: ..." to @s->error. Return: -EBADMSG. */
int source_malformed(struct source *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void source_free(struct source *s);

/* Arguments for "%.*s" that print at most 60 bytes of a piece. */
#define PIECE_SHOWN(p) (int)((p).length < 60 ? (p).length : 60), (p).text

#endif
