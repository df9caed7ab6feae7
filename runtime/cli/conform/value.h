/* SPDX-License-Identifier: MIT */
/*
 * Members of a checked vector: types are right, so reading cannot fail.
 * Absent members and nulls give the @otherwise.
 */
#ifndef CLI_VECTOR_VALUE_H
#define CLI_VECTOR_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../json/json_read.h"

const struct json *member(const struct json *object, const char *key);
const char *text_member(const struct json *object, const char *key, const char *otherwise);
int64_t integer_member(const struct json *object, const char *key, int64_t otherwise);
double number_member(const struct json *object, const char *key, double otherwise);
bool bool_member(const struct json *object, const char *key, bool otherwise);

/* Numbers are JSON's, or "nan", "inf", "-inf". */
bool value_is_number(const struct json *value);
double value_number(const struct json *value);

/* Elements of a list, 0 of anything else. */
size_t list_length(const struct json *list);

/* Lists as arrays, malloc'd, never NULL but when out of memory. */
int64_t *list_integers(const struct json *list);
float *list_floats(const struct json *list);

/* Numbers in a nested list. */
size_t nested_count(const struct json *nested);
/* ... written to @out in row-major order; returns the end. */
float *nested_flatten(const struct json *nested, float *out);
/* Is it exactly of this shape? An empty dimension ends it. */
bool nested_has_shape(const struct json *nested, const int64_t *shape, size_t rank);

/**
 * matrix_rows() - some rows of a matrix
 * @matrix: nested (checked with nested_has_shape()), fill, arange or row_id
 * @ids: logical ids for row_id, or NULL: @first and up
 * @first: position in the matrix of the first row wanted
 * @out: [count][dim]
 */
void matrix_rows(const struct json *matrix, const int64_t *ids, int64_t first, size_t count,
		 size_t dim, float *out);

#endif
