/* SPDX-License-Identifier: MIT */
/* Vector files: strict JSON, then every key and type as the format says. */
#ifndef CLI_VECTOR_FILE_H
#define CLI_VECTOR_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "../../json/json_read.h"

#define VECTOR_ERROR_TEXT 512

/**
 * vector_parse() - read one vector out of memory
 * @text: [length], need not end in a zero byte
 * @error: [VECTOR_ERROR_TEXT], filled on failure: which key, what was wrong
 *
 * What this accepts has every key that must be there, no others, and the JSON
 * types of the format; values are the model's business.
 *
 * Return: the file's object, the caller's to json_free(), or NULL.
 */
const struct json *vector_parse(const char *text, size_t length, char *error);

/* The same of a model alone, as vector_read_model(). */
const struct json *vector_parse_model(const char *text, size_t length, char *error);

/* vector_parse() of a file. */
const struct json *vector_read(const char *path, char *error);

/*
 * vector_read_model() - the model of a file alone
 *
 * As vector_read(), but schema, name and steps may be left out.
 */
const struct json *vector_read_model(const char *path, char *error);

/* schema.c: 0, or -1 with @error filled. @model: as vector_read_model(). */
int vector_check(const struct json *vector, bool model, char *error);

#endif
