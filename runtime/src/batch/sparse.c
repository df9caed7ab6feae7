// SPDX-License-Identifier: MIT
/*
 * Sparse inputs: COO becomes CSR. The leading dimensions of the shape are samples, in row-major
 * order, and the last one is the bag. Serving checks its inputs with the same functions.
 *
 * The offsets lie in memory of the batch. One thread uses a batch at a time; no lock is taken.
 */
#include <string.h>

#include "input.h"

int input_check_coo(const struct feature *f, const struct coo *coo)
{
	char text[SHAPE_TEXT];

	if (!coo->shape || coo->rank < 2 || coo->rank > EMBENG_MAX_RANK + 1)
		return fail(-EINVAL,
			    "feature %s: a sparse input needs a shape of rank 2 to %d; rank "
			    "%zu was given",
			    f->name, EMBENG_MAX_RANK + 1, coo->shape ? coo->rank : 0);
	shape_text(text, coo->shape, coo->rank, false);
	if (coo->shape[coo->rank - 1] < 0 || shape_product(coo->shape, coo->rank - 1, false) < 0)
		return fail(-EINVAL,
			    "feature %s: the sparse shape %s has a negative length or more "
			    "samples than 64 bits count",
			    f->name, text);
	if (!coo->indices && coo->count)
		return fail(-EINVAL, "feature %s: indices are NULL for %zu values", f->name,
			    coo->count);
	return 0;
}

int input_check_place(const struct feature *f, const struct coo *coo, size_t k)
{
	const int64_t *index = coo->indices + k * coo->rank;
	const int64_t *before = k ? index - coo->rank : index;

	for (size_t d = 0; d < coo->rank; d++) {
		if (index[d] < 0 || index[d] >= coo->shape[d])
			return fail(-ERANGE,
				    "feature %s: indices[%zu][%zu] is %lld, not within 0 and "
				    "%lld, the shape's length below",
				    f->name, k, d, (long long)index[d], (long long)coo->shape[d]);
	}
	/* Within a bag any order is an order: sums follow it as given. */
	for (size_t d = 0; k && d + 1 < coo->rank; d++) {
		if (index[d] > before[d])
			return 0;
		if (index[d] < before[d])
			return fail(
				-EINVAL,
				"feature %s: indices[%zu] comes after indices[%zu], which "
				"is of a later sample; sort indices, values and weights by sample",
				f->name, k, k - 1);
	}
	return 0;
}

/* Indices rise, so a sample's offset is known once a later sample is seen. */
static int add_offsets(struct input *input, const struct feature *f, const struct coo *coo)
{
	size_t sample = 0;
	int code;

	input->own_offsets[0] = 0;
	for (size_t k = 0; k < coo->count; k++) {
		code = input_check_place(f, coo, k);
		if (code)
			return code;
		while (sample < coo_sample(coo, k))
			input->own_offsets[++sample] = (int64_t)k;
	}
	while (sample < input->samples)
		input->own_offsets[++sample] = (int64_t)coo->count;
	return 0;
}

static int take_sparse(struct input *input, const struct feature *f, const struct ids *ids,
		       const struct coo *coo)
{
	int code = input_ids(input, f, ids);

	if (!code)
		code = input_check_coo(f, coo);
	if (code)
		return code;
	input->samples = (size_t)shape_product(coo->shape, coo->rank - 1, false);
	code = input_offsets(input, f, input->samples);
	if (!code)
		code = add_offsets(input, f, coo);
	if (code)
		return code;
	input_rows(input, f, input->own_offsets, input->samples);
	if (coo->rank > 2) {
		input->pooled = true;
		input->rank = coo->rank - 1;
		memcpy(input->shape, coo->shape, input->rank * sizeof(*coo->shape));
	}
	return 0;
}

int embeng_batch_sparse(struct embeng_batch *b, int feature, enum embeng_id_type type,
			const int64_t *indices, const void *values, size_t value_count,
			const int64_t *shape, size_t rank, const float *weights,
			size_t weight_count)
{
	struct ids in = {type, values, value_count, weights, weight_count};
	struct coo coo = {indices, value_count, shape, rank};
	const struct feature *f;
	int code;
	struct input *input = input_begin(b, feature, &f, &code);

	return input ? input_end(input, take_sparse(input, f, &in, &coo)) : code;
}
