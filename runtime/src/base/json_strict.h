/* SPDX-License-Identifier: MIT */
/*
 * Reads the library's own documents, each by the members that it must hold. A mistake is -EBADMSG
 * with a sentence that begins with the place.
 */
#ifndef EMBENG_JSON_STRICT_H
#define EMBENG_JSON_STRICT_H

#include <errno.h>

#include "../../json/json_read.h"
#include "../../json/json_write.h"

/* The place of a value, for sentences: "FILE" or "FILE: LIST INDEX". */
struct place {
	const char *file;
	const char *list; /* NULL: the document itself */
	size_t index;
};

void json_say_bad(const struct place *at, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The value is -EBADMSG itself, so that a compiler sees which way a failure goes. */
#define json_bad(at, ...) \
	({ \
		json_say_bad(at, __VA_ARGS__); \
		-EBADMSG; \
	})

/* Reads a text that is one object; the caller frees it with json_free(). 0, -EBADMSG, -ENOMEM. */
int json_parse_strict(const char *text, size_t length, const struct place *at,
		      const struct json **out);

/* These read members that must be there. */
int json_number(const struct json *o, const struct place *at, const char *key, uint64_t least,
		uint64_t most, uint64_t *out);
/* The text has no zero byte inside. */
int json_text(const struct json *o, const struct place *at, const char *key, const char **out);
/* The member is an array or an object. */
int json_member(const struct json *o, const struct place *at, const char *key, enum json_kind kind,
		const struct json **out);
/* The member is a text of 16 or 8 lowercase hexadecimal digits, as @digits says. */
int json_hex(const struct json *o, const struct place *at, const char *key, int digits,
	     uint64_t *out);

/* Reads a value that is no member. False if it is no whole number up to @most. */
bool json_is_number(const struct json *value, uint64_t most, uint64_t *out);
/* Reads @text, which is @digits lower-case hexadecimal digits; false when it is anything else. */
bool hex_number(const char *text, int digits, uint64_t *out);

/* These read members that may be missing, and then leave *out alone. */
int json_flag(const struct json *o, const struct place *at, const char *key, bool *out);
int json_real(const struct json *o, const struct place *at, const char *key, bool *there,
	      float *out);
/* Writes a float. JSON has no infinities, so they become the texts "inf" and "-inf". */
void json_write_float(struct json_writer *w, const char *name, float value);

/* Calls json_write_end(), and sets a sentence when it fails: @what is the document. */
int json_finish(struct json_writer *w, const char *what, char **text, size_t *length);

#endif
