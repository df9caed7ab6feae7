/* SPDX-License-Identifier: MIT */
/* Reads vector files: strict JSON with exactly the keys and types of the format. */
#ifndef CLI_VECTOR_FILE_H
#define CLI_VECTOR_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "../../json/json_read.h"

#define VECTOR_ERROR_TEXT 512

/**
 * vector_parse() - read one vector from memory
 * @text: @length bytes; no zero byte is needed at the end
 * @error: [VECTOR_ERROR_TEXT] on failure filled with the key and what is wrong with it
 *
 * A vector that is accepted has every required key, no unknown keys, and the JSON types of the
 * format. Values are checked when a model is made of them.
 *
 * Return: the file's object, which the caller frees with json_free(), or NULL.
 */
const struct json *vector_parse(const char *text, size_t length, char *error);

/* vector_parse() for a model alone, see vector_read_model(). */
const struct json *vector_parse_model(const char *text, size_t length, char *error);

/* vector_parse() for a file. */
const struct json *vector_read(const char *path, char *error);

/*
 * vector_read_model() - read a file of which only the model is needed
 *
 * It is like vector_read(), but schema, name and steps may be missing.
 */
const struct json *vector_read_model(const char *path, char *error);

/* schema.c: checks a vector; @model: only its model. Return: 0, or -1 with @error filled. */
int vector_check(const struct json *vector, bool model, char *error);

#endif
