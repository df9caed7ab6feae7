// SPDX-License-Identifier: MIT
/*
 * Looking at the values of a document: json_read.c makes them, and nothing changes them. A file of
 * its own because all that read documents need it, and none of it knows the text.
 */
#include <string.h>

#include "json_read.h"

bool json_is(const struct json *value, enum json_kind kind)
{
	return (value ? value->kind : JSON_NULL) == kind;
}

const struct json *json_get(const struct json *object, const char *name)
{
	size_t length = strlen(name);

	if (!json_is(object, JSON_OBJECT))
		return NULL;
	for (size_t i = 0; i < object->length; i++) {
		const struct json_member *member = &object->members[i];

		if (member->name_length == length && !memcmp(member->name, name, length))
			return &member->value;
	}
	return NULL;
}

size_t json_length(const struct json *value)
{
	return json_is(value, JSON_ARRAY) || json_is(value, JSON_OBJECT) ? value->length : 0;
}

const struct json *json_at(const struct json *value, size_t i)
{
	if (i >= json_length(value))
		return NULL;
	return value->kind == JSON_ARRAY ? &value->elements[i] : &value->members[i].value;
}

const char *json_name(const struct json *object, size_t i)
{
	return object->members[i].name;
}

const char *json_string(const struct json *value)
{
	return json_is(value, JSON_TEXT) ? value->text : NULL;
}

bool json_says(const struct json *value, const char *text)
{
	return json_is(value, JSON_TEXT) && value->length == strlen(text) &&
	       !memcmp(value->text, text, value->length);
}

bool json_true(const struct json *value)
{
	return json_is(value, JSON_BOOLEAN) && value->boolean;
}

int64_t json_int64(const struct json *value)
{
	if (!json_is(value, JSON_INTEGER))
		return 0;
	if (value->magnitude > INT64_MAX)
		return value->negative ? INT64_MIN : INT64_MAX;
	return value->negative ? -(int64_t)value->magnitude : (int64_t)value->magnitude;
}

double json_double(const struct json *value)
{
	if (json_is(value, JSON_REAL))
		return value->real;
	if (!json_is(value, JSON_INTEGER))
		return 0;
	return value->negative ? -(double)value->magnitude : (double)value->magnitude;
}
