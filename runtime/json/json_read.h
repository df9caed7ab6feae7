/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON documents that obey RFC 8259, and no others: the UTF-8 is well-formed, no member is
 * twice in an object, and no number is out of a double's range.
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

/* Size of the buffer for a sentence about a document. */
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
 * @kind: kind of the value, which decides which of the other members are used
 * @negative: an integer has a minus sign; "-0" is negative, too
 * @length: number of bytes of a text, elements of an array, or members of an object
 * @magnitude: absolute value of an integer
 * @text: UTF-8 with a zero byte behind it; there may be zero bytes inside as well
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

/* A member of an object. @name is UTF-8 and ends with its only zero byte. */
struct json_member {
	const char *name;
	size_t name_length;
	struct json value;
};

/**
 * json_read() - read a text that is one document
 * @text: @length bytes; no byte behind them is read, so no zero byte is needed
 * @levels: how deep values may be nested; the document itself is at level 1
 * @out: set to the document, which the caller frees with json_free()
 * @why: on failure filled with a sentence that says what is wrong at which byte
 *
 * A member's name with a zero byte inside is refused, so that names are what C takes them for.
 * Neither the locale nor the rounding of the caller matters. Time is linear, but for objects of
 * many members, whose names are sorted.
 *
 * Return: 0, -EBADMSG, -ENOMEM.
 */
int json_read(const char *text, size_t length, unsigned int levels, const struct json **out,
	      char why[JSON_WHY]);

/* Frees a document from json_read(). NULL is ignored. */
void json_free(const struct json *document);

/* Whether @value is of that kind. NULL, which stands for a missing member, counts as a null. */
bool json_is(const struct json *value, enum json_kind kind);

/* The member of that name; NULL when there is none or @object is no object. */
const struct json *json_get(const struct json *object, const char *name);

/* Number of elements of an array or members of an object; 0 for anything else. */
size_t json_length(const struct json *value);
/* The i-th element or member, in the order of the text; NULL from json_length() on. */
const struct json *json_at(const struct json *value, size_t i);
/* The name of the i-th member, which must exist. */
const char *json_name(const struct json *object, size_t i);

/* The bytes of a text; NULL if @value is no text. */
const char *json_string(const struct json *value);
/* Whether @value is exactly this text. */
bool json_says(const struct json *value, const char *text);
/* Whether @value is the boolean true. */
bool json_true(const struct json *value);
/* The value of an integer, or the nearest one that fits; 0 for anything else. */
int64_t json_int64(const struct json *value);
/* The double that is nearest to a number; 0 for anything else. */
double json_double(const struct json *value);

#endif
