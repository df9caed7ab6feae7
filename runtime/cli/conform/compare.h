/* SPDX-License-Identifier: MIT */
/* Compares the numbers of a result with the expected ones. */
#ifndef CLI_VECTOR_COMPARE_H
#define CLI_VECTOR_COMPARE_H

#include "run.h"

/**
 * struct comparison - comparison of one array, piece by piece
 * @differing: number of elements beyond the tolerance
 * @first: index of the first such element, with its @got and @expected
 * @largest: largest error of any element
 */
struct comparison {
	double atol, rtol;
	size_t seen, differing, first;
	double got, expected, largest;
};

/* Starts a comparison with the tolerances of a step. */
struct comparison comparison_start(const struct json *body);

void compare_floats(struct comparison *c, const float *got, const float *expected, size_t count);

/* Return: 0, or STEP_MISMATCH with the failure noted. For @where and @name see run_mismatch(). */
int comparison_end(const struct comparison *c, struct run *r, const char *where, const char *name,
		   const int64_t *shape, size_t rank);

/* Compares a feature's activations with the nested list @expected, with the tolerances of @body. */
int compare_output(struct run *r, const char *name, const float *data, const int64_t *shape,
		   size_t rank, const struct json *body, const struct json *expected);

#endif
