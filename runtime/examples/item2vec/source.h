/* SPDX-License-Identifier: MIT */
/* Text that data is read from, line by line; what is wrong is named by file and line. */
#ifndef ITEM2VEC_DATA_SOURCE_H
#define ITEM2VEC_DATA_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dataset.h"

/**
 * struct source - a stream and where it stands
 * @stream: read from
 * @name: for messages
 * @line: number of the last line read
 * @text: that line, without its end; [length], NUL-terminated
 * @again: the next source_line() gives the same line once more
 * @error: the sentence that goes with a failure
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

/* 1: a line was read, 0: the end, negative errno: the stream failed, or a NUL (-EBADMSG). */
int source_line(struct source *s);

/* "NAME:LINE: ..." to @s->error. Return: -EBADMSG. */
int source_malformed(struct source *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void source_free(struct source *s);

/* A piece for "%.*s": at most 60 bytes of it. */
#define PIECE_SHOWN(p) (int)((p).length < 60 ? (p).length : 60), (p).text

#endif
