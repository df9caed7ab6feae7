/* SPDX-License-Identifier: MIT */
/*
 * A JSON document, written from its first value to its last. What goes wrong on the way is kept:
 * nothing more is written, and json_write_end() reports it, so that no caller can take a part for
 * the whole. A writer belongs to one thread.
 */
#ifndef EMBENG_JSON_WRITE_H
#define EMBENG_JSON_WRITE_H

#include "json_read.h"

/* Containers that may lie in each other. */
#define JSON_WRITE_DEPTH 32

enum json_style {
	JSON_COMPACT, /* no space at all */
	JSON_SPACED,  /* one line with spaces */
	JSON_LINES,   /* a value a line, two spaces a level, a newline at the end */
};

/**
 * struct json_writer - a document under way; the writer's own but for @why
 * @why: once json_write_end() has failed, what was wrong
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
 * json_write_end() - the text of the document
 * @text: out, malloc'd, a zero byte behind it
 * @length: out, without that byte
 *
 * All containers have to be closed. Frees what was written when it fails.
 *
 * Return: 0, -ENOMEM, -EINVAL: a text that is not UTF-8, a real that is not finite, more than
 * JSON_WRITE_DEPTH containers in each other.
 */
int json_write_end(struct json_writer *w, char **text, size_t *length);

/*
 * A value. @name: of a member; NULL in an array and for the document itself. A container is open
 * until json_write_close().
 */
void json_write_object(struct json_writer *w, const char *name);
void json_write_array(struct json_writer *w, const char *name);
void json_write_close(struct json_writer *w);
void json_write_text(struct json_writer *w, const char *name, const char *text);
void json_write_number(struct json_writer *w, const char *name, uint64_t number);
void json_write_flag(struct json_writer *w, const char *name, bool flag);
void json_write_null(struct json_writer *w, const char *name);
/* 17 digits: whoever reads them has the same double, in any locale and rounding. */
void json_write_real(struct json_writer *w, const char *name, double real);
/* All that was read; NULL is a null. */
void json_write_value(struct json_writer *w, const char *name, const struct json *value);

/* The caller had no memory for what it would have written. */
void json_write_no_memory(struct json_writer *w);

#endif
