// SPDX-License-Identifier: MIT
/*
 * Compares numbers with those that a vector expects: |got - expected| <= atol + rtol * |expected|.
 * NaN equals NaN, and an infinity only itself.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../frame/output.h"
#include "compare.h"
#include "value.h"

#define DEFAULT_TOLERANCE 1e-6

struct comparison comparison_start(const struct json *body)
{
	return (struct comparison){
		.atol = number_member(body, "atol", DEFAULT_TOLERANCE),
		.rtol = number_member(body, "rtol", DEFAULT_TOLERANCE),
	};
}

static double error_of(double got, double expected)
{
	if (got == expected || (isnan(got) && isnan(expected)))
		return 0;
	if (!isfinite(got) || !isfinite(expected))
		return INFINITY;
	return fabs(got - expected);
}

static void compare_one(struct comparison *c, double got, double expected)
{
	double error = error_of(got, expected);
	bool close = !error || (isfinite(error) && error <= c->atol + c->rtol * fabs(expected));

	c->largest = fmax(c->largest, error);
	if (!close && !c->differing++) {
		c->first = c->seen;
		c->got = got;
		c->expected = expected;
	}
	c->seen++;
}

void compare_floats(struct comparison *c, const float *got, const float *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		compare_one(c, (double)got[i], (double)expected[i]);
}

/* "[1][2]" of a flat index. */
static void write_index(char *out, size_t size, size_t index, const int64_t *shape, size_t rank)
{
	size_t below = 1, used = 0;

	for (size_t i = 1; i < rank; i++)
		below *= (size_t)shape[i];
	out[0] = '\0';
	for (size_t i = 0; i < rank && used < size; i++) {
		used += (size_t)snprintf(out + used, size - used, "[%zu]", index / below);
		index %= below;
		if (i + 1 < rank)
			below /= (size_t)shape[i + 1];
	}
}

int comparison_end(const struct comparison *c, struct run *r, const char *where, const char *name,
		   const int64_t *shape, size_t rank)
{
	char at[24 * (EMBENG_MAX_RANK + 1)];
	int result;

	if (!c->differing)
		return 0;
	write_index(at, sizeof(at), c->first, shape, rank);
	result = run_mismatch(r, where, name,
			      "%s '%s' at %s: got %.9g, expected %.9g; %zu of %zu differ", where,
			      name, at, c->got, c->expected, c->differing, c->seen);
	json_object_object_add(r->failure, "at", json_object_new_string(at));
	json_add_float(r->failure, "got", c->got);
	json_add_float(r->failure, "expected", c->expected);
	json_add_float(r->failure, "largest_error", c->largest);
	return result;
}

int compare_output(struct run *r, const char *name, const float *data, const int64_t *shape,
		   size_t rank, const struct json *body, const struct json *expected)
{
	struct comparison comparison = comparison_start(body);
	float *numbers;

	if (!nested_has_shape(expected, shape, rank))
		return run_mismatch(r, "feature", name,
				    "feature '%s': the activations have another shape than is "
				    "expected",
				    name);
	numbers = list_floats(expected);
	if (!numbers)
		return run_fail(r, -ENOMEM, "out of memory");
	compare_floats(&comparison, data, numbers, nested_count(expected));
	free(numbers);
	return comparison_end(&comparison, r, "feature", name, shape, rank);
}
