/* SPDX-License-Identifier: MIT */
/*
 * The library's documents, read by what they must hold. What is wrong is -EBADMSG with a sentence
 * that begins with the place.
 */
#ifndef EMBENG_JSON_STRICT_H
#define EMBENG_JSON_STRICT_H

#include <errno.h>

#include "../../json/json_read.h"
#include "../../json/json_write.h"

/* Where a value stands: "FILE" or "FILE: LIST INDEX". */
struct place {
	const char *file;
	const char *list; /* NULL: the document itself */
	size_t index;
};

void json_say_bad(const struct place *at, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* -EBADMSG itself, so that a compiler sees which way a failure goes. */
#define json_bad(at, ...) ({ json_say_bad(at, __VA_ARGS__); -EBADMSG; })

/* One object and white space; json_free() it. 0, -EBADMSG, -ENOMEM. */
int json_parse_strict(const char *text, size_t length, const struct place *at,
		      const struct json **out);

/* Members that must be there. */
int json_number(const struct json *o, const struct place *at, const char *key, uint64_t least,
		uint64_t most, uint64_t *out);
/* Without a zero byte inside. */
int json_text(const struct json *o, const struct place *at, const char *key, const char **out);
/* An array or an object. */
int json_member(const struct json *o, const struct place *at, const char *key,
		enum json_kind kind, const struct json **out);
/* 16 or 8 lowercase hexadecimal digits, no less. */
int json_hex(const struct json *o, const struct place *at, const char *key, int digits,
	     uint64_t *out);

/* A value by itself. */
bool json_is_number(const struct json *value, uint64_t most, uint64_t *out);
/* Hexadecimal digits of @text, in lower case; false when there is anything else. */
bool hex_number(const char *text, int digits, uint64_t *out);

/* Members that may be there; *out is untouched when they are not. */
int json_flag(const struct json *o, const struct place *at, const char *key, bool *out);
int json_real(const struct json *o, const struct place *at, const char *key, bool *there,
	      float *out);
/* The other way: infinities have no JSON number and are the texts "inf" and "-inf". */
void json_write_float(struct json_writer *w, const char *name, float value);

/* json_write_end() with a sentence: @what is the document. */
int json_finish(struct json_writer *w, const char *what, char **text, size_t *length);

#endif
