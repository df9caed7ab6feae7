/* SPDX-License-Identifier: MIT */
/* Documents of tests: read from memory that ends where they do, and written again. */
#ifndef EMBENG_TESTS_JSON_HELP_H
#define EMBENG_TESTS_JSON_HELP_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/json/json_read.h"
#include "runtime/json/json_write.h"

#define LEVELS 16

/* Reads a copy with nothing behind it, so that ASan finds reads beyond the end. */
static inline int read_json(const char *text, size_t length, const struct json **out,
			    char why[JSON_WHY])
{
	char *copy = malloc(length ? length : 1);
	int ret;

	memcpy(copy, text, length);
	why[0] = '\0';
	ret = json_read(copy, length, LEVELS, out, why);
	free(copy);
	return ret;
}

static inline const struct json *must_read(const char *text)
{
	const struct json *document = NULL;
	char why[JSON_WHY];

	ck_assert_msg(!read_json(text, strlen(text), &document, why), "%s: %s", text, why);
	return document;
}

/* The document as text, malloc'd. */
static inline char *written(const struct json *document, enum json_style style)
{
	struct json_writer w;
	size_t length;
	char *text;

	json_write_begin(&w, style);
	json_write_value(&w, NULL, document);
	ck_assert_msg(!json_write_end(&w, &text, &length), "%s", w.why);
	ck_assert_uint_eq(strlen(text), length);
	return text;
}

#endif
