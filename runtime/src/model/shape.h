/* SPDX-License-Identifier: MIT */
/* Shapes of inputs and outputs, without the trailing dim (docs/spec/semantics.md 5.2). */
#ifndef EMBENG_SHAPE_H
#define EMBENG_SHAPE_H

#include "batch/batch.h"
#include "model.h"

/* Bytes that hold any shape as text: rank + 1 numbers of at most 20 characters. */
#define SHAPE_TEXT (24 * (EMBENG_MAX_RANK + 2))

/* Writes "[2, 0, 3]", or with @open "[2, ?, 3]"; a shape that is too long is cut off. */
void shape_text(char text[static SHAPE_TEXT], const int64_t *shape, size_t rank, bool open);

/*
 * shape_product() - number of positions in a shape
 * @open: count unknown dims (0) as 1
 *
 * Return: the product, or -1 when it is more than an int64_t or a dim is negative.
 */
int64_t shape_product(const int64_t *shape, size_t rank, bool open);

/* The output's shape as the model has it, built or configured; rank 0 if it is not known. */
struct embeng_shape shape_known(const struct feature *feature);

/* Refuses an input that has no position in some dimension. Return: 0, or -EINVAL. */
int shape_check_filled(const struct feature *feature, const struct input *input);

/*
 * shape_resolve() - find the output shape for an input
 * @output: the shape as far as it is known, filled in; rank 0: the feature's shape is used, or the
 *	input's
 *
 * Return: 0, or -EINVAL with a sentence naming the feature.
 */
int shape_resolve(const struct feature *feature, const struct input *input,
		  const struct output *output, struct output *resolved);

#endif
