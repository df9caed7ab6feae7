// SPDX-License-Identifier: MIT
/* Reading and parsing of vector files. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vector_file.h"

/* A vector's deepest value, a nested list of the highest rank, is far above this. */
#define DEPTH 32

#define READ_AT_ONCE 65536

static struct json_object *parse_strict(const char *text, size_t length, char *error)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	enum json_tokener_error code;
	struct json_object *root;

	if (!tokener) {
		snprintf(error, VECTOR_ERROR_TEXT, "out of memory");
		return NULL;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, text, (int)length);
	code = json_tokener_get_error(tokener);
	if (code != json_tokener_success) {
		json_object_put(root);
		root = NULL;
		snprintf(error, VECTOR_ERROR_TEXT, "no JSON: %s at byte %zu",
			 code == json_tokener_continue ? "the text ends too early"
						       : json_tokener_error_desc(code),
			 json_tokener_get_parse_end(tokener));
	} else if (!root) {
		snprintf(error, VECTOR_ERROR_TEXT, "must be an object"); /* the text "null" */
	}
	json_tokener_free(tokener);
	return root;
}

static size_t count_members(struct json_object *value)
{
	size_t count = 0;

	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member) {
			(void)key;
			count += 1 + count_members(member);
		}
	} else if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++)
			count += count_members(json_object_array_get_idx(value, i));
	}
	return count;
}

/* What a model needs no more than a name does, so that one check holds for all. */
static void add_missing(struct json_object *root)
{
	if (!json_object_is_type(root, json_type_object))
		return;
	if (!json_object_object_get_ex(root, "schema", NULL))
		json_object_object_add(root, "schema", json_object_new_string("embeng.vector/1"));
	if (!json_object_object_get_ex(root, "name", NULL))
		json_object_object_add(root, "name", json_object_new_string("model"));
	if (!json_object_object_get_ex(root, "steps", NULL))
		json_object_object_add(root, "steps", json_object_new_array());
}

static struct json_object *parse(const char *text, size_t length, bool model, char *error)
{
	struct json_object *root;
	size_t members;

	if (length > INT_MAX) {
		snprintf(error, VECTOR_ERROR_TEXT, "longer than %d bytes", INT_MAX);
		return NULL;
	}
	if (vector_lexis_check(text, length, &members, error))
		return NULL;
	root = parse_strict(text, length, error);
	if (!root)
		return NULL;
	/* The parser keeps the last of two equal keys, so fewer members than the text has. */
	if (count_members(root) != members) {
		snprintf(error, VECTOR_ERROR_TEXT, "a key stands twice in one object");
		json_object_put(root);
		return NULL;
	}
	if (model)
		add_missing(root);
	if (!vector_check(root, error))
		return root;
	json_object_put(root);
	return NULL;
}

struct json_object *vector_parse(const char *text, size_t length, char *error)
{
	return parse(text, length, false, error);
}

struct json_object *vector_parse_model(const char *text, size_t length, char *error)
{
	return parse(text, length, true, error);
}

static char *read_all(FILE *file, size_t *length)
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
	} while (got && used <= INT_MAX);
	if (ferror(file)) {
		free(text);
		return NULL;
	}
	*length = used;
	return text;
}

static struct json_object *read_file(const char *path, bool model, char *error)
{
	struct json_object *root = NULL;
	FILE *file = fopen(path, "rb");
	char *text = NULL;
	size_t length;

	error[0] = '\0';
	if (file)
		text = read_all(file, &length);
	if (text)
		root = parse(text, length, model, error);
	else
		snprintf(error, VECTOR_ERROR_TEXT, "cannot be read: %s", strerror(errno));
	if (file)
		fclose(file);
	free(text);
	return root;
}

struct json_object *vector_read(const char *path, char *error)
{
	return read_file(path, false, error);
}

struct json_object *vector_read_model(const char *path, char *error)
{
	return read_file(path, true, error);
}
