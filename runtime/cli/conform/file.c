// SPDX-License-Identifier: MIT
/*
 * Reads and parses vector files. Their contents are checked in schema.c.
 *
 * A document belongs to the caller until json_free().
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"

/* A vector's deepest value, a nested list of the highest rank, is far above this. */
#define DEPTH 32

#define READ_AT_ONCE 65536

static const struct json *parse_vector(const char *text, size_t length, bool model, char *error)
{
	const struct json *root;
	char why[JSON_WHY];

	if (json_read(text, length, DEPTH, &root, why)) {
		snprintf(error, VECTOR_ERROR_TEXT, "%s", why);
		return NULL;
	}
	error[0] = '\0';
	if (!vector_check(root, model, error))
		return root;
	json_free(root);
	return NULL;
}

const struct json *vector_parse(const char *text, size_t length, char *error)
{
	return parse_vector(text, length, false, error);
}

const struct json *vector_parse_model(const char *text, size_t length, char *error)
{
	return parse_vector(text, length, true, error);
}

static char *read_stream_text(FILE *file, size_t *length)
{
	size_t capacity = 0, used = 0, got;
	char *text = NULL;

	do {
		if (capacity - used < READ_AT_ONCE) {
			char *grown = realloc(text, capacity = 2 * capacity + READ_AT_ONCE);

			if (!grown) {
				free(text);
				return NULL;
			}
			text = grown;
		}
		got = fread(text + used, 1, READ_AT_ONCE, file);
		used += got;
	} while (got);
	if (ferror(file)) {
		free(text);
		return NULL;
	}
	*length = used;
	return text;
}

static const struct json *read_vector_file(const char *path, bool model, char *error)
{
	const struct json *root = NULL;
	FILE *file = fopen(path, "rbe");
	char *text = NULL;
	size_t length;

	error[0] = '\0';
	if (file)
		text = read_stream_text(file, &length);
	if (text)
		root = parse_vector(text, length, model, error);
	else
		snprintf(error, VECTOR_ERROR_TEXT, "cannot be read: %s", strerror(errno));
	if (file)
		fclose(file);
	free(text);
	return root;
}

const struct json *vector_read(const char *path, char *error)
{
	return read_vector_file(path, false, error);
}

const struct json *vector_read_model(const char *path, char *error)
{
	return read_vector_file(path, true, error);
}
