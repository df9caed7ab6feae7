/* SPDX-License-Identifier: MIT */
/*
 * Writes a JSON document from its first value to its last. The first error on the way is kept:
 * nothing more is written, and json_write_end() reports it, so that no caller mistakes a part for
 * the whole. Only one thread may use a writer.
 */
#ifndef EMBENG_JSON_WRITE_H
#define EMBENG_JSON_WRITE_H

#include "json_read.h"

/* Most containers that may be nested. */
#define JSON_WRITE_DEPTH 32

enum json_style {
	JSON_COMPACT, /* no space at all */
	JSON_SPACED,  /* one line with spaces */
	JSON_LINES,   /* one value on each line, two spaces for each level, a newline at the end */
};

/**
 * struct json_writer - a document that is being written; callers may only read @why
 * @why: once json_write_end() has failed, a sentence that says what was wrong
 */
struct json_writer {
	enum json_style style;
	char *text;
	size_t length, capacity;
	unsigned int depth;
	char closers[JSON_WRITE_DEPTH];
	bool filled; /* the innermost container has a value */
	int error;
	char why[JSON_WHY];
};

void json_write_begin(struct json_writer *w, enum json_style style);

/**
 * json_write_end() - finish a document and return its text
 * @text: set to the text, with a zero byte behind it; the caller frees it with free()
 * @length: set to the bytes of the text, without the zero byte
 *
 * All containers must be closed. On failure the text is freed.
 *
 * Return: 0, -ENOMEM; -EINVAL for a text that is not UTF-8, a real that is not finite, or more than
 * JSON_WRITE_DEPTH nested containers.
 */
int json_write_end(struct json_writer *w, char **text, size_t *length);

/*
 * Each writes a value. @name is the member's name; NULL in an array and for the document itself. A
 * container is open until json_write_close().
 */
void json_write_object(struct json_writer *w, const char *name);
void json_write_array(struct json_writer *w, const char *name);
void json_write_close(struct json_writer *w);
void json_write_text(struct json_writer *w, const char *name, const char *text);
void json_write_number(struct json_writer *w, const char *name, uint64_t number);
void json_write_flag(struct json_writer *w, const char *name, bool flag);
void json_write_null(struct json_writer *w, const char *name);
/* Writes 17 digits, from which any reader gets the same double, in any locale and rounding. */
void json_write_real(struct json_writer *w, const char *name, double real);
/* Writes the digits of a number as they are. */
void json_write_digits(struct json_writer *w, const char *name, const char *digits);
/* Writes a value that json_read() has read; NULL is written as null. */
void json_write_value(struct json_writer *w, const char *name, const struct json *value);

/* Makes the document fail with -ENOMEM, because the caller had no memory for a value. */
void json_write_no_memory(struct json_writer *w);

#endif
