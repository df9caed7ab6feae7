// SPDX-License-Identifier: MIT
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "json_strict.h"

#define DEPTH 16

void json_say_bad(const struct place *at, const char *fmt, ...)
{
	char text[EMBENG_ERROR_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (at->list)
		fail(-EBADMSG, "%s: %s %zu: %s", at->file, at->list, at->index, text);
	else
		fail(-EBADMSG, "%s: %s", at->file, text);
}

/* Colons outside of strings: as many as there are members in the text. */
static size_t members_written(const char *text, size_t length)
{
	bool inside = false;
	size_t count = 0;

	for (size_t i = 0; i < length; i++) {
		if (inside && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			inside = !inside;
		else if (!inside && text[i] == ':')
			count++;
	}
	return count;
}

static size_t members_kept(struct json_object *value)
{
	size_t count = 0;

	if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++)
			count += members_kept(json_object_array_get_idx(value, i));
	} else if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member) {
			(void)key;
			count += 1 + members_kept(member);
		}
	}
	return count;
}

/* What json-c calls a success to be continued is none for a text that is all there is. */
static const char *why(enum json_tokener_error error)
{
	return error == json_tokener_continue ? "the text ends too early"
					      : json_tokener_error_desc(error);
}

static int parse(struct json_tokener *tokener, const char *text, size_t length,
		 const struct place *at, struct json_object **out)
{
	struct json_object *made;
	int ret = 0;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	made = json_tokener_parse_ex(tokener, text, (int)length);
	if (json_tokener_get_error(tokener) != json_tokener_success)
		ret = json_bad(at, "no JSON at byte %zu: %s", json_tokener_get_parse_end(tokener),
			       why(json_tokener_get_error(tokener)));
	else if (!json_object_is_type(made, json_type_object))
		ret = json_bad(at, "not a JSON object");
	else if (json_tokener_get_parse_end(tokener) != length)
		ret = json_bad(at, "something stands behind the JSON object, at byte %zu",
			       json_tokener_get_parse_end(tokener));
	else if (members_written(text, length) != members_kept(made))
		ret = json_bad(at, "an object has two members of the same name");
	if (ret)
		json_object_put(made);
	else
		*out = made;
	return ret;
}

int json_parse_strict(const char *text, size_t length, const struct place *at,
		      struct json_object **out)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	int ret;

	while (length && strchr(" \t\r\n", text[length - 1]) && text[length - 1])
		length--;
	if (!tokener)
		return fail(-ENOMEM, "%s: no memory to read JSON", at->file);
	ret = length > INT32_MAX ? json_bad(at, "more than 2 GiB of JSON")
				 : parse(tokener, text, length, at, out);
	json_tokener_free(tokener);
	return ret;
}

bool json_is_number(struct json_object *value, uint64_t most, uint64_t *out)
{
	uint64_t number;

	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	number = json_object_get_uint64(value);
	/* What is too large for 64 bits reads as the largest. */
	if (number > most || number == UINT64_MAX)
		return false;
	*out = number;
	return true;
}

int json_number(struct json_object *o, const struct place *at, const char *key, uint64_t least,
		uint64_t most, uint64_t *out)
{
	struct json_object *value = json_object_object_get(o, key);
	uint64_t number;

	if (!json_is_number(value, most, &number) || number < least)
		return json_bad(at, "\"%s\" is not a whole number from %llu to %llu", key,
				(unsigned long long)least, (unsigned long long)most);
	*out = number;
	return 0;
}

int json_text(struct json_object *o, const struct place *at, const char *key, const char **out)
{
	struct json_object *value = json_object_object_get(o, key);
	const char *text;

	if (!json_object_is_type(value, json_type_string))
		return json_bad(at, "\"%s\" is not a text", key);
	text = json_object_get_string(value);
	if (strlen(text) != (size_t)json_object_get_string_len(value))
		return json_bad(at, "\"%s\" has a zero byte inside", key);
	*out = text;
	return 0;
}

int json_member(struct json_object *o, const struct place *at, const char *key,
		enum json_type type, struct json_object **out)
{
	struct json_object *value = json_object_object_get(o, key);

	if (!json_object_is_type(value, type))
		return json_bad(at, "\"%s\" is not an %s", key, json_type_to_name(type));
	*out = value;
	return 0;
}

bool hex_number(const char *text, int digits, uint64_t *out)
{
	static const char all[] = "0123456789abcdef";
	uint64_t number = 0;

	for (int i = 0; i < digits; i++) {
		const char *digit = text[i] ? strchr(all, text[i]) : NULL;

		if (!digit)
			return false;
		number = number << 4 | (uint64_t)(digit - all);
	}
	*out = number;
	return true;
}

int json_hex(struct json_object *o, const struct place *at, const char *key, int digits,
	     uint64_t *out)
{
	const char *text;
	int ret = json_text(o, at, key, &text);

	if (ret)
		return ret;
	if (strlen(text) != (size_t)digits || !hex_number(text, digits, out))
		return json_bad(at, "\"%s\" is not %d hexadecimal digits in lower case", key,
				digits);
	return 0;
}

int json_flag(struct json_object *o, const struct place *at, const char *key, bool *out)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value))
		return 0;
	if (!json_object_is_type(value, json_type_boolean))
		return json_bad(at, "\"%s\" is neither true nor false", key);
	*out = json_object_get_boolean(value);
	return 0;
}

static bool is_float(struct json_object *value, float *out)
{
	const char *text = json_object_get_string(value);

	if (json_object_is_type(value, json_type_string)) {
		if (strcmp(text, "inf") && strcmp(text, "-inf"))
			return false;
		*out = *text == '-' ? -INFINITY : INFINITY;
		return true;
	}
	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int))
		return false;
	*out = (float)json_object_get_double(value);
	return isfinite(*out) && (double)*out == json_object_get_double(value);
}

int json_real(struct json_object *o, const struct place *at, const char *key, bool *there,
	       float *out)
{
	struct json_object *value;
	float number;

	if (!json_object_object_get_ex(o, key, &value))
		return 0;
	if (!is_float(value, &number))
		return json_bad(at, "\"%s\" is not the value of a 32-bit float", key);
	*out = number;
	if (there)
		*there = true;
	return 0;
}

struct json_object *json_of_float(float value)
{
	if (isinf(value))
		return json_object_new_string(value < 0 ? "-inf" : "inf");
	return json_object_new_double((double)value);
}
