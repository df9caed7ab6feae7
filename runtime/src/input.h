/* SPDX-License-Identifier: MIT */
/* Shared by the forms of input: dense, ragged and sparse. */
#ifndef EMBENG_INPUT_H
#define EMBENG_INPUT_H

#include "error.h"
#include "shape.h"

/* The ids and weights of an input, as every form has them. */
struct ids {
	enum embeng_id_type type;
	const void *ids;
	size_t id_count;
	const float *weights;
	size_t weight_count;
};

/*
 * input_begin() - the input of a feature, emptied
 * @f: out, the feature
 *
 * Return: NULL with a sentence when there is no such feature (@code).
 */
struct input *input_begin(struct embeng_batch *b, int feature, const struct feature **f, int *code);

/* Checks what every form has in common, and stores it. */
int input_ids(struct input *input, const struct feature *f, const struct ids *ids);

/* Grows own_offsets to @samples + 1. */
int input_offsets(struct input *input, const struct feature *f, size_t samples);

/* An input of samples in CSR form whose shape is one dimension, or a sequence's two. */
void input_rows(struct input *input, const struct feature *f, const int64_t *offsets,
		size_t samples);

/* Ends what input_begin() began: a refusal is kept for the batch's enqueue. */
int input_end(struct input *input, int code);

#endif
