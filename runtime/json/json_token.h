/* SPDX-License-Identifier: MIT */
/* A part of the reader: reads the texts and numbers of a document. */
#ifndef EMBENG_JSON_TOKEN_H
#define EMBENG_JSON_TOKEN_H

#include <locale.h>

#include "json_arena.h"
#include "json_read.h"

/**
 * struct json_source - a document that is being read
 * @text: the document, @length bytes
 * @at: offset of the next byte
 * @plain: the locale in which numbers are read
 * @why: once something is wrong, a sentence that says what
 */
struct json_source {
	const char *text;
	size_t length, at;
	locale_t plain;
	struct json_arena *arena;
	char *why;
};

/* The functions below return 0, or -EBADMSG or -ENOMEM with @why filled. */

/* Fills @why with what is wrong with the next byte. */
int json_refuse(struct json_source *s, const char *what);
int json_refuse_end(struct json_source *s);
int json_no_memory(struct json_source *s);

/* Reads a text; the next byte is the opening quote. */
int json_take_text(struct json_source *s, const char **text, size_t *length);
/* Reads a number; the next byte is a minus sign or a digit. */
int json_take_number(struct json_source *s, struct json *out);
/* Reads the rest of @word, whose first letter is the next byte. */
int json_take_word(struct json_source *s, const char *word);

#endif
