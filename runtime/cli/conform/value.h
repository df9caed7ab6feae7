/* SPDX-License-Identifier: MIT */
/*
 * Reads members of a checked vector. Their types are right, so reading cannot fail.
 * For a member that is absent or null, @otherwise is returned.
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

/* Whether it is a number of JSON, or "nan", "inf" or "-inf". */
bool value_is_number(const struct json *value);
double value_number(const struct json *value);

/* Number of elements of a list; 0 for anything else. */
size_t list_length(const struct json *list);

/* Convert a list to a malloc'd array. Return: NULL only without memory. */
int64_t *list_integers(const struct json *list);
float *list_floats(const struct json *list);

/* Number of numbers in a nested list. */
size_t nested_count(const struct json *nested);
/* Writes the numbers of a nested list to @out in row-major order. Returns the end. */
float *nested_flatten(const struct json *nested, float *out);
/* Whether it has exactly this shape. Dimensions after one of 0 cannot be seen. */
bool nested_has_shape(const struct json *nested, const int64_t *shape, size_t rank);

/**
 * matrix_rows() - copy some rows of a matrix
 * @matrix: a nested list that was checked with nested_has_shape(), fill, arange or row_id
 * @ids: logical ids for row_id; NULL: @first and up
 * @first: index in the matrix of the first row wanted
 * @out: [count][dim] filled with the rows
 */
void matrix_rows(const struct json *matrix, const int64_t *ids, int64_t first, size_t count,
		 size_t dim, float *out);

#endif
