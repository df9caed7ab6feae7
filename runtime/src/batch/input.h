/* SPDX-License-Identifier: MIT */
/* Shared by the forms of input: dense, ragged and sparse. */
#ifndef EMBENG_INPUT_H
#define EMBENG_INPUT_H

#include "base/error.h"
#include "model/shape.h"

/* The ids and weights of an input, which every form has. */
struct ids {
	enum embeng_id_type type;
	const void *ids;
	size_t id_count;
	const float *weights;
	size_t weight_count;
};

/* How many ids the caller gave, with padding, and whether the @k-th is padding. */
static inline size_t input_given(const struct input *input)
{
	return input->given_ids ? input->given_count : input->id_count;
}

static inline bool input_pads(const struct input *input, size_t k)
{
	return input->given_ids &&
	       input->padding == (input->type == EMBENG_I32
					  ? ((const int32_t *)input->given_ids)[k]
					  : ((const int64_t *)input->given_ids)[k]);
}

/* The places of the ids of a sparse input: all indices but the last name the sample. */
struct coo {
	const int64_t *indices; /* [count][rank] */
	size_t count;
	const int64_t *shape;
	size_t rank;
};

/*
 * Checks of an input that training and serving share. Each returns 0, or a negative errno with a
 * sentence that names the feature.
 */
int input_feature(const struct embeng_model *model, int feature, const struct feature **f);
/* Ends a sentence about a weight that is not finite: how the model or the feature may allow it. */
const char *input_weight_remedy(const struct feature *f);
/* Says that weight @at of an input is not finite. Returns -ERANGE. */
int input_weight_error(const struct feature *f, const struct input *in, size_t at, float weight);
int input_check_ids(const struct feature *f, const struct ids *in);
int input_check_dense(const struct feature *f, size_t id_count, const int64_t *shape, size_t rank);
int input_check_splits(const struct feature *f, size_t id_count, const int64_t *row_splits,
		       size_t split_count);
int input_check_coo(const struct feature *f, const struct coo *coo);
/* Checks the @k-th place: it is in bounds and comes after the one before. */
int input_check_place(const struct feature *f, const struct coo *coo, size_t k);

/* Sample of the @k-th id, row-major; its place was checked. */
static inline size_t coo_sample(const struct coo *coo, size_t k)
{
	const int64_t *index = coo->indices + k * coo->rank;
	size_t sample = (size_t)index[0];

	for (size_t d = 1; d + 1 < coo->rank; d++)
		sample = sample * (size_t)coo->shape[d] + (size_t)index[d];
	return sample;
}

/*
 * input_begin() - empty the input of a feature and return it
 * @f: set to the feature
 *
 * Return: NULL with a sentence when there is no such feature (@code).
 */
struct input *input_begin(struct embeng_batch *b, int feature, const struct feature **f, int *code);

/* Checks ids with input_check_ids() and stores them. */
int input_ids(struct input *input, const struct feature *f, const struct ids *ids);

/* Grows own_offsets to @samples + 1. */
int input_offsets(struct input *input, const struct feature *f, size_t samples);

/* Stores an input in CSR form whose shape has one dimension, or two for a sequence. */
void input_rows(struct input *input, const struct feature *f, const int64_t *offsets,
		size_t samples);

/*
 * bags.c: the @samples bags from the @first on, as offsets and without padding; @left: ids that no bag
 * before these has, of which theirs are taken off. The form of the bags was checked.
 */
int input_bags(struct input *input, const struct feature *f, const struct embeng_bags *bags,
	       size_t first, size_t samples, uint64_t *left);

/* Forgets the input; its memory is kept for the next one. */
void input_clear(struct input *input);

/* Ends an input that input_begin() began. A refusal is kept and reported by the batch's enqueue. */
int input_end(struct input *input, int code);

#endif
