// SPDX-License-Identifier: MIT
/*
 * Shapes: their text, their number of positions, and the shape of an output from the input's and
 * the expected one.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "shape.h"

void shape_text(char text[static SHAPE_TEXT], const int64_t *shape, size_t rank, bool open)
{
	size_t shown = rank > EMBENG_MAX_RANK + 1 ? EMBENG_MAX_RANK + 1 : rank;
	char *at = text;

	*at++ = '[';
	for (size_t i = 0; i < shown; i++) {
		at += sprintf(at, "%s", i ? ", " : "");
		if (shape[i] || !open)
			at += sprintf(at, "%lld", (long long)shape[i]);
		else
			*at++ = '?';
	}
	strcpy(at, shown < rank ? "..." : "]");
}

int64_t shape_product(const int64_t *shape, size_t rank, bool open)
{
	int64_t product = 1;
	bool empty = false;

	for (size_t i = 0; i < rank; i++) {
		if (shape[i] < 0)
			return -1;
		if (!shape[i])
			empty = !open;
		else if (__builtin_mul_overflow(product, shape[i], &product))
			return -1;
	}
	return empty ? 0 : product;
}

struct embeng_shape shape_known(const struct feature *f)
{
	struct embeng_shape known = {.rank = f->output_rank};

	if (f->built.rank)
		return f->built;
	memcpy(known.dims, f->output_shape, known.rank * sizeof(known.dims[0]));
	return known;
}

/* The shape that the output must have: remembered, or the model's, or any (rank 0). */
static struct output expected_output(const struct feature *f, const struct output *output)
{
	struct embeng_shape known = shape_known(f);
	struct output want = *output;

	if (!want.rank) {
		want.rank = known.rank;
		memcpy(want.shape, known.dims, sizeof(want.shape));
	}
	return want;
}

/* A flat input fills an output of higher rank in row-major order. */
static int reshape_output(const struct feature *f, const struct input *in,
			  const struct output *want)
{
	int64_t positions = shape_product(want->shape, want->rank, false);
	char text[SHAPE_TEXT];

	shape_text(text, want->shape, want->rank, true);
	if (!positions)
		return fail(-EINVAL,
			    "feature %s: output shape %s is not fully defined, and %zu samples "
			    "in one dimension do not define it; give the unknown lengths",
			    f->name, text, in->samples);
	if ((uint64_t)positions == in->samples)
		return 0;
	if (in->samples && (uint64_t)positions > in->samples &&
	    (uint64_t)positions % in->samples == 0)
		return fail(
			-EINVAL,
			"feature %s: %zu samples are a factor of the %lld positions of "
			"output shape %s, they should be all of them; sequences are asked for by "
			"max_sequence_length without an output shape",
			f->name, in->samples, (long long)positions, text);
	return fail(-EINVAL,
		    "feature %s: %zu samples do not fill the %lld positions of output shape "
		    "%s; give as many samples as positions",
		    f->name, in->samples, (long long)positions, text);
}

static int compare_shapes(const struct feature *f, const struct input *in,
			  const struct output *want)
{
	char got[SHAPE_TEXT], allowed[SHAPE_TEXT];
	bool same = in->rank == want->rank;

	for (size_t i = 0; same && i < in->rank; i++)
		same = !want->shape[i] || want->shape[i] == in->shape[i];
	if (same)
		return 0;
	shape_text(got, in->shape, in->rank, false);
	shape_text(allowed, want->shape, want->rank, true);
	return fail(-EINVAL,
		    "feature %s: inconsistent shape: the input's is %s, expected is %s, from "
		    "the model, its build or the first batch",
		    f->name, got, allowed);
}

int shape_check_filled(const struct feature *f, const struct input *in)
{
	for (size_t i = 0; i < in->rank; i++) {
		if (!in->shape[i])
			return fail(-EINVAL,
				    "feature %s: the input is empty, dimension %zu of its %zu "
				    "has length 0; give at least one sample, or open the model "
				    "without fixed_shapes",
				    f->name, i, in->rank);
	}
	return 0;
}

int shape_resolve(const struct feature *f, const struct input *in, const struct output *output,
		  struct output *resolved)
{
	struct output want = expected_output(f, output);
	int code;

	if (in->rank <= 2 && want.rank > in->rank) {
		code = reshape_output(f, in, &want);
	} else {
		code = want.rank ? compare_shapes(f, in, &want) : 0;
		want.rank = in->rank;
		memcpy(want.shape, in->shape, sizeof(want.shape));
	}
	if (code)
		return code;
	want.fixed = true;
	*resolved = want;
	return 0;
}
