/* SPDX-License-Identifier: MIT */
/* Inside of the reader: texts and numbers where a document has them. */
#ifndef EMBENG_JSON_TOKEN_H
#define EMBENG_JSON_TOKEN_H

#include <locale.h>

#include "json_arena.h"
#include "json_read.h"

/**
 * struct json_source - a document that is being read
 * @text: [@length]
 * @at: of the next byte
 * @plain: the locale in which numbers are read
 * @why: what is wrong, once something is
 */
struct json_source {
	const char *text;
	size_t length, at;
	locale_t plain;
	struct json_arena *arena;
	char *why;
};

/* All below: 0, -EBADMSG or -ENOMEM, with @why filled. */

/* Says what is wrong with the next byte. */
int json_refuse(struct json_source *s, const char *what);
int json_refuse_end(struct json_source *s);
int json_no_memory(struct json_source *s);

/* From the opening quote on. */
int json_take_text(struct json_source *s, const char **text, size_t *length);
/* From a minus sign or a digit on. */
int json_take_number(struct json_source *s, struct json *out);
/* The rest of @word, which begins here. */
int json_take_word(struct json_source *s, const char *word);

#endif
