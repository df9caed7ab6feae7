// SPDX-License-Identifier: MIT
/*
 * Reads members of a vector that was checked, so types are right and reading cannot fail. Absent
 * members and nulls give the value that the caller names.
 */
#include <math.h>
#include <stdlib.h>

#include "value.h"

const struct json *member(const struct json *object, const char *key)
{
	const struct json *value = json_get(object, key);

	return json_is(value, JSON_NULL) ? NULL : value;
}

const char *text_member(const struct json *object, const char *key, const char *otherwise)
{
	const struct json *value = member(object, key);

	return json_is(value, JSON_TEXT) ? json_string(value) : otherwise;
}

int64_t integer_member(const struct json *object, const char *key, int64_t otherwise)
{
	const struct json *value = member(object, key);

	return value ? json_int64(value) : otherwise;
}

double number_member(const struct json *object, const char *key, double otherwise)
{
	const struct json *value = member(object, key);

	return value ? value_number(value) : otherwise;
}

bool bool_member(const struct json *object, const char *key, bool otherwise)
{
	const struct json *value = member(object, key);

	return value ? json_true(value) : otherwise;
}

bool value_is_number(const struct json *value)
{
	return json_is(value, JSON_INTEGER) || json_is(value, JSON_REAL) ||
	       json_says(value, "nan") || json_says(value, "inf") || json_says(value, "-inf");
}

double value_number(const struct json *value)
{
	if (!json_is(value, JSON_TEXT))
		return json_double(value);
	if (json_says(value, "nan"))
		return NAN;
	return json_says(value, "-inf") ? -INFINITY : INFINITY;
}

size_t list_length(const struct json *list)
{
	return json_is(list, JSON_ARRAY) ? json_length(list) : 0;
}

int64_t *list_integers(const struct json *list)
{
	size_t count = list_length(list);
	int64_t *out = malloc((count + 1) * sizeof(*out));

	for (size_t i = 0; out && i < count; i++)
		out[i] = json_int64(json_at(list, i));
	return out;
}

float *list_floats(const struct json *list)
{
	float *out = malloc((nested_count(list) + 1) * sizeof(*out));

	if (out)
		nested_flatten(list, out);
	return out;
}

size_t nested_count(const struct json *nested)
{
	size_t count = 0;

	if (!json_is(nested, JSON_ARRAY))
		return 1;
	for (size_t i = 0; i < json_length(nested); i++)
		count += nested_count(json_at(nested, i));
	return count;
}

float *nested_flatten(const struct json *nested, float *out)
{
	if (!json_is(nested, JSON_ARRAY)) {
		*out = (float)value_number(nested);
		return out + 1;
	}
	for (size_t i = 0; i < json_length(nested); i++)
		out = nested_flatten(json_at(nested, i), out);
	return out;
}

bool nested_has_shape(const struct json *nested, const int64_t *shape, size_t rank)
{
	if (!rank)
		return !json_is(nested, JSON_ARRAY);
	if (!json_is(nested, JSON_ARRAY) || (int64_t)json_length(nested) != shape[0])
		return false;
	for (size_t i = 0; i < json_length(nested); i++) {
		if (!nested_has_shape(json_at(nested, i), shape + 1, rank - 1))
			return false;
	}
	return true;
}

static void formula_row(const struct json *matrix, int64_t id, int64_t position, size_t dim,
			float *out)
{
	const struct json *arange = member(matrix, "arange");
	double start = number_member(matrix, "fill", 0), step = 0;

	if (member(matrix, "row_id"))
		start = (double)id + number_member(matrix, "row_id", 0);
	if (arange) {
		step = value_number(json_at(arange, 1));
		start = value_number(json_at(arange, 0)) + step * ((double)position * (double)dim);
	}
	for (size_t column = 0; column < dim; column++)
		out[column] = (float)(start + step * (double)column);
}

void matrix_rows(const struct json *matrix, const int64_t *ids, int64_t first, size_t count,
		 size_t dim, float *out)
{
	for (size_t i = 0; i < count; i++, out += dim) {
		int64_t position = first + (int64_t)i;

		if (json_is(matrix, JSON_ARRAY))
			nested_flatten(json_at(matrix, (size_t)position), out);
		else
			formula_row(matrix, ids ? ids[i] : position, position, dim, out);
	}
}
