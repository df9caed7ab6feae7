/* SPDX-License-Identifier: MIT */
/* Numbers that came out against those that must. */
#ifndef CLI_VECTOR_COMPARE_H
#define CLI_VECTOR_COMPARE_H

#include "run.h"

/**
 * struct comparison - over one array, in pieces
 * @differing: elements beyond the tolerance
 * @first: index of the first of them, with its @got and @expected
 * @largest: largest error, of all elements
 */
struct comparison {
	double atol, rtol;
	size_t seen, differing, first;
	double got, expected, largest;
};

/* Tolerances of a step. */
struct comparison comparison_start(const struct json *body);

void compare_floats(struct comparison *c, const float *got, const float *expected, size_t count);

/* 0, or STEP_MISMATCH with the failure noted. @where, @name: as run_mismatch(). */
int comparison_end(const struct comparison *c, struct run *r, const char *where, const char *name,
		   const int64_t *shape, size_t rank);

/* A feature's activations with the nested list @expected; tolerances of the step's @body. */
int compare_output(struct run *r, const char *name, const float *data, const int64_t *shape,
		   size_t rank, const struct json *body, const struct json *expected);

#endif
