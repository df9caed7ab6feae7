// SPDX-License-Identifier: MIT
/*
 * Writes a document as text by the library's own writer, which reports memory that runs out; json-c's
 * leaves out what it has no memory for.
 *
 * The document is only read; the text belongs to the caller.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "../../json/json_write.h"
#include "document.h"

static void write_value(struct json_writer *w, const char *name, struct json_object *value);

static void write_document_object(struct json_writer *w, const char *name,
				  struct json_object *object)
{
	json_write_object(w, name);
	json_object_object_foreach(object, key, value) write_value(w, key, value);
	json_write_close(w);
}

static void write_document_array(struct json_writer *w, const char *name, struct json_object *array)
{
	json_write_array(w, name);
	for (size_t i = 0; i < json_object_array_length(array); i++)
		write_value(w, NULL, json_object_array_get_idx(array, i));
	json_write_close(w);
}

static void write_integer_digits(struct json_writer *w, const char *name,
				 struct json_object *integer)
{
	int64_t number = json_object_get_int64(integer);
	char digits[24];

	if (number >= 0) {
		json_write_number(w, name, json_object_get_uint64(integer));
		return;
	}
	snprintf(digits, sizeof(digits), "%" PRId64, number);
	json_write_digits(w, name, digits);
}

/* Numbers with digits of their own (json_float()) keep them. */
static void write_double(struct json_writer *w, const char *name, struct json_object *real)
{
	const char *digits = json_object_get_userdata(real);

	if (digits)
		json_write_digits(w, name, digits);
	else
		json_write_real(w, name, json_object_get_double(real));
}

static void write_value(struct json_writer *w, const char *name, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		json_write_null(w, name);
		return;
	case json_type_boolean:
		json_write_flag(w, name, json_object_get_boolean(value));
		return;
	case json_type_double:
		write_double(w, name, value);
		return;
	case json_type_int:
		write_integer_digits(w, name, value);
		return;
	case json_type_object:
		write_document_object(w, name, value);
		return;
	case json_type_array:
		write_document_array(w, name, value);
		return;
	case json_type_string:
		json_write_text(w, name, json_object_get_string(value));
	}
}

static int write_document(struct json_object *document, enum json_style style, char **text,
			  size_t *length)
{
	struct json_writer w;

	json_write_begin(&w, style);
	write_value(&w, NULL, document);
	return json_write_end(&w, text, length);
}

int document_text(struct json_object *document, char **text, size_t *length)
{
	return write_document(document, JSON_LINES, text, length);
}

int document_line(struct json_object *document, char **text, size_t *length)
{
	return write_document(document, JSON_SPACED, text, length);
}
