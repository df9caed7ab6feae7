// SPDX-License-Identifier: MIT
/*
 * Members that the library's JSON documents must or may have, by type. Each one that is wrong is
 * refused with the place where it stands. runtime/json/ reads and writes the JSON; it knows no
 * place and no sentence of the library's, because the command uses it as well.
 *
 * Documents and texts belong to the caller. No lock is needed.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../../engine/port.h"
#include "../../text/number.h"
#include "error.h"
#include "json_strict.h"

/* Levels of values; a checkpoint's index has five. */
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

int json_parse_strict(const char *text, size_t length, const struct place *at,
		      const struct json **out)
{
	const struct json *document;
	char why[JSON_WHY];
	int ret = json_read(text, length, DEPTH, &document, why);

	if (ret == -ENOMEM)
		return fail(ret, "%s: %s", at->file, why);
	if (ret)
		return json_bad(at, "%s", why);
	if (!json_is(document, JSON_OBJECT)) {
		json_free(document);
		return json_bad(at, "not a JSON object");
	}
	*out = document;
	return 0;
}

bool json_is_number(const struct json *value, uint64_t most, uint64_t *out)
{
	if (!json_is(value, JSON_INTEGER) || value->magnitude > most ||
	    (value->negative && value->magnitude))
		return false;
	*out = value->magnitude;
	return true;
}

int json_number(const struct json *o, const struct place *at, const char *key, uint64_t least,
		uint64_t most, uint64_t *out)
{
	const struct json *value = json_get(o, key);
	uint64_t number;

	if (!json_is_number(value, most, &number) || number < least)
		return json_bad(at, "\"%s\" is not a whole number from %llu to %llu", key,
				(unsigned long long)least, (unsigned long long)most);
	*out = number;
	return 0;
}

int json_text(const struct json *o, const struct place *at, const char *key, const char **out)
{
	const struct json *value = json_get(o, key);

	if (!json_is(value, JSON_TEXT))
		return json_bad(at, "\"%s\" is not a text", key);
	if (strlen(value->text) != value->length)
		return json_bad(at, "\"%s\" has a zero byte inside", key);
	*out = value->text;
	return 0;
}

int json_member(const struct json *o, const struct place *at, const char *key, enum json_kind kind,
		const struct json **out)
{
	const struct json *value = json_get(o, key);

	if (!json_is(value, kind))
		return json_bad(at, "\"%s\" is not an %s", key,
				kind == JSON_ARRAY ? "array" : "object");
	*out = value;
	return 0;
}

bool hex_number(const char *text, int digits, uint64_t *out)
{
	uint64_t number;

	if (number_read(text, (size_t)digits, 16, &number))
		return false;
	for (int i = 0; i < digits; i++) {
		if (text[i] >= 'A' && text[i] <= 'F')
			return false;
	}
	*out = number;
	return true;
}

int json_hex(const struct json *o, const struct place *at, const char *key, int digits,
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

int json_flag(const struct json *o, const struct place *at, const char *key, bool *out)
{
	const struct json *value = json_get(o, key);

	if (!value)
		return 0;
	if (!json_is(value, JSON_BOOLEAN))
		return json_bad(at, "\"%s\" is neither true nor false", key);
	*out = value->boolean;
	return 0;
}

/*
 * A caller's unit may flush subnormals or round another way. Volatile values are computed
 * between the two calls and not before or behind them.
 */
static bool is_float(const struct json *value, float *out)
{
	volatile float near;
	volatile bool same;
	struct port_fpu fpu;

	if (json_says(value, "inf") || json_says(value, "-inf")) {
		*out = *value->text == '-' ? -INFINITY : INFINITY;
		return true;
	}
	if (!json_is(value, JSON_REAL) && !json_is(value, JSON_INTEGER))
		return false;
	port_fpu_begin(&fpu);
	near = (float)json_double(value);
	same = (double)near == json_double(value);
	port_fpu_end(&fpu);
	*out = near;
	return same && isfinite(*out);
}

int json_real(const struct json *o, const struct place *at, const char *key, bool *there,
	      float *out)
{
	const struct json *value = json_get(o, key);
	float number;

	if (!value)
		return 0;
	if (!is_float(value, &number))
		return json_bad(at, "\"%s\" is not the value of a 32-bit float", key);
	*out = number;
	if (there)
		*there = true;
	return 0;
}

void json_write_float(struct json_writer *w, const char *name, float value)
{
	struct port_fpu fpu;
	volatile double wide;

	port_fpu_begin(&fpu);
	wide = (double)value;
	port_fpu_end(&fpu);
	if (isinf(value))
		json_write_text(w, name, value < 0 ? "-inf" : "inf");
	else
		json_write_real(w, name, wide);
}

int json_finish(struct json_writer *w, const char *what, char **text, size_t *length)
{
	int ret = json_write_end(w, text, length);

	return ret ? fail(ret, "%s: %s", what, w->why) : 0;
}
