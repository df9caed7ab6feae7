/* SPDX-License-Identifier: MIT */
/*
 * JSON documents as RFC 8259 has them, and no others: UTF-8 that is well-formed, no member
 * twice in an object, no number that is out of a double's range.
 *
 * A document is a tree that nobody changes once it is read, so any number of threads may look at
 * it. All of it, texts included, lives until json_free(). The functions that look at a value
 * take NULL for one that is not there.
 */
#ifndef EMBENG_JSON_READ_H
#define EMBENG_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a sentence about a document. */
#define JSON_WHY 160

enum json_kind {
	JSON_NULL,
	JSON_BOOLEAN,
	JSON_INTEGER, /* no fraction, no exponent, from -2^63 to 2^64 - 1 */
	JSON_REAL,    /* all other numbers */
	JSON_TEXT,
	JSON_ARRAY,
	JSON_OBJECT,
};

struct json_member;

/**
 * struct json - a value
 * @kind: which of the others count
 * @negative: of an integer; "-0" is negative, too
 * @length: bytes of a text, elements of an array, members of an object
 * @magnitude: of an integer
 * @text: UTF-8, a zero byte behind it; there may be others inside
 */
struct json {
	enum json_kind kind;
	bool negative;
	size_t length;
	union {
		bool boolean;
		uint64_t magnitude;
		double real;
		const char *text;
		const struct json *elements;
		const struct json_member *members;
	};
};

/* @name: UTF-8 without a zero byte inside, one behind it */
struct json_member {
	const char *name;
	size_t name_length;
	struct json value;
};

/**
 * json_read() - read the one document that a text is
 * @text: [@length]; nothing behind that is read, no zero byte is needed
 * @levels: how deep a value may lie; the document itself lies at level 1
 * @out: the document, the caller's to json_free()
 * @why: filled on failure: what is wrong, and at which byte
 *
 * A member's name with a zero byte inside is refused, so that names are what C takes them for.
 * Neither the locale nor the rounding of the caller matters. Time is linear, but for objects of many members,
 * whose names are sorted.
 *
 * Return: 0, -EBADMSG, -ENOMEM.
 */
int json_read(const char *text, size_t length, unsigned int levels, const struct json **out,
	      char why[JSON_WHY]);

/* Only what json_read() returned, or NULL. */
void json_free(const struct json *document);

/* Whether @value is of that kind. NULL, which stands for a missing member, counts as a null. */
bool json_is(const struct json *value, enum json_kind kind);

/* The member of that name; NULL when there is none or @object is no object. */
const struct json *json_get(const struct json *object, const char *name);

/* Elements of an array or members of an object, 0 of anything else. */
size_t json_length(const struct json *value);
/* The i-th of them, in the order of the text; NULL from json_length() on. */
const struct json *json_at(const struct json *value, size_t i);
/* ... and its name, of a member that is there. */
const char *json_name(const struct json *object, size_t i);

/* A text, or NULL. */
const char *json_string(const struct json *value);
/* Whether it is exactly this text. */
bool json_says(const struct json *value, const char *text);
/* Whether it is the boolean true. */
bool json_true(const struct json *value);
/* An integer, or the one next to it that fits; 0 of anything else. */
int64_t json_int64(const struct json *value);
/* A number as the double next to it; 0 of anything else. */
double json_double(const struct json *value);

#endif
