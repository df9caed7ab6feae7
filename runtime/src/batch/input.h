/* SPDX-License-Identifier: MIT */
/* Shared by the forms of input: dense, ragged and sparse. */
#ifndef EMBENG_INPUT_H
#define EMBENG_INPUT_H

#include "base/error.h"
#include "model/shape.h"

/* The ids and weights of an input, as every form has them. */
struct ids {
	enum embeng_id_type type;
	const void *ids;
	size_t id_count;
	const float *weights;
	size_t weight_count;
};

/* The ids of a sparse input by place: all but the last index are the sample. */
struct coo {
	const int64_t *indices; /* [count][rank] */
	size_t count;
	const int64_t *shape;
	size_t rank;
};

/*
 * What an input is checked for, whoever looks it up: 0, or a negative errno with the
 * sentence naming the feature.
 */
int input_feature(const struct embeng_model *model, int feature, const struct feature **f);
int input_check_ids(const struct feature *f, const struct ids *in);
int input_check_dense(const struct feature *f, size_t id_count, const int64_t *shape,
		      size_t rank);
int input_check_splits(const struct feature *f, size_t id_count, const int64_t *row_splits,
		       size_t split_count);
int input_check_coo(const struct feature *f, const struct coo *coo);
/* The @k-th place, which the one before it precedes. */
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
 * input_begin() - the input of a feature, emptied
 * @f: out, the feature
 *
 * Return: NULL with a sentence when there is no such feature (@code).
 */
struct input *input_begin(struct embeng_batch *b, int feature, const struct feature **f, int *code);

/* input_check_ids(), and stores them. */
int input_ids(struct input *input, const struct feature *f, const struct ids *ids);

/* Grows own_offsets to @samples + 1. */
int input_offsets(struct input *input, const struct feature *f, size_t samples);

/* An input of samples in CSR form whose shape is one dimension, or a sequence's two. */
void input_rows(struct input *input, const struct feature *f, const int64_t *offsets,
		size_t samples);

/* Forgets what was handed in; the memory stays. */
void input_clear(struct input *input);

/* Ends what input_begin() began: a refusal is kept for the batch's enqueue. */
int input_end(struct input *input, int code);

#endif
