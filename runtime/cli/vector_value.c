// SPDX-License-Identifier: MIT
/* Reading of checked vectors. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vector_value.h"

struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, key, &value);
	return value;
}

const char *text_member(struct json_object *object, const char *key, const char *otherwise)
{
	struct json_object *value = member(object, key);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value)
							    : otherwise;
}

int64_t integer_member(struct json_object *object, const char *key, int64_t otherwise)
{
	struct json_object *value = member(object, key);

	return value ? json_object_get_int64(value) : otherwise;
}

double number_member(struct json_object *object, const char *key, double otherwise)
{
	struct json_object *value = member(object, key);

	return value ? value_number(value) : otherwise;
}

bool bool_member(struct json_object *object, const char *key, bool otherwise)
{
	struct json_object *value = member(object, key);

	return value ? json_object_get_boolean(value) : otherwise;
}

bool value_is_number(struct json_object *value)
{
	const char *text;

	if (json_object_is_type(value, json_type_int) ||
	    json_object_is_type(value, json_type_double))
		return true;
	if (!json_object_is_type(value, json_type_string))
		return false;
	text = json_object_get_string(value);
	return !strcmp(text, "nan") || !strcmp(text, "inf") || !strcmp(text, "-inf");
}

double value_number(struct json_object *value)
{
	const char *text;

	if (!json_object_is_type(value, json_type_string))
		return json_object_get_double(value);
	text = json_object_get_string(value);
	if (!strcmp(text, "nan"))
		return NAN;
	return *text == '-' ? -INFINITY : INFINITY;
}

size_t list_length(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

int64_t *list_integers(struct json_object *list)
{
	size_t count = list_length(list);
	int64_t *out = malloc((count + 1) * sizeof(*out));

	for (size_t i = 0; out && i < count; i++)
		out[i] = json_object_get_int64(json_object_array_get_idx(list, i));
	return out;
}

float *list_floats(struct json_object *list)
{
	float *out = malloc((nested_count(list) + 1) * sizeof(*out));

	if (out)
		nested_flatten(list, out);
	return out;
}

size_t nested_count(struct json_object *nested)
{
	size_t count = 0;

	if (!json_object_is_type(nested, json_type_array))
		return 1;
	for (size_t i = 0; i < json_object_array_length(nested); i++)
		count += nested_count(json_object_array_get_idx(nested, i));
	return count;
}

float *nested_flatten(struct json_object *nested, float *out)
{
	if (!json_object_is_type(nested, json_type_array)) {
		*out = (float)value_number(nested);
		return out + 1;
	}
	for (size_t i = 0; i < json_object_array_length(nested); i++)
		out = nested_flatten(json_object_array_get_idx(nested, i), out);
	return out;
}

bool nested_has_shape(struct json_object *nested, const int64_t *shape, size_t rank)
{
	if (!rank)
		return !json_object_is_type(nested, json_type_array);
	if (!json_object_is_type(nested, json_type_array) ||
	    (int64_t)json_object_array_length(nested) != shape[0])
		return false;
	for (size_t i = 0; i < json_object_array_length(nested); i++) {
		if (!nested_has_shape(json_object_array_get_idx(nested, i), shape + 1, rank - 1))
			return false;
	}
	return true;
}

static void formula_row(struct json_object *matrix, int64_t id, int64_t position, size_t dim,
			float *out)
{
	struct json_object *arange = member(matrix, "arange");
	double start = number_member(matrix, "fill", 0), step = 0;

	if (member(matrix, "row_id"))
		start = (double)id + number_member(matrix, "row_id", 0);
	if (arange) {
		step = value_number(json_object_array_get_idx(arange, 1));
		start = value_number(json_object_array_get_idx(arange, 0)) +
			step * ((double)position * (double)dim);
	}
	for (size_t column = 0; column < dim; column++)
		out[column] = (float)(start + step * (double)column);
}

void matrix_rows(struct json_object *matrix, const int64_t *ids, int64_t first, size_t count,
		 size_t dim, float *out)
{
	for (size_t i = 0; i < count; i++, out += dim) {
		int64_t position = first + (int64_t)i;

		if (json_object_is_type(matrix, json_type_array))
			nested_flatten(json_object_array_get_idx(matrix, (size_t)position), out);
		else
			formula_row(matrix, ids ? ids[i] : position, position, dim, out);
	}
}
