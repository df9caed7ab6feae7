/* SPDX-License-Identifier: MIT */
/*
 * The offsets of everything in the buffers of a step, and the sizes of these buffers. A
 * session that allocates and a plan that predicts use the same functions.
 */
#ifndef EMBENG_LAYOUT_H
#define EMBENG_LAYOUT_H

#include "batch/batch.h"
#include "model/model.h"
#include "wire.h"

/* An array that a descriptor names. */
struct array {
	const void *data; /* the caller's memory; NULL: the array is not given */
	uint64_t count, width;
	uint64_t at; /* offset of the array's copy */
	bool in_place;
	struct embeng_mem mem;
};

/* The arrays of a feature, which follow each other in struct slot. */
enum { OFFSETS, IDS, WEIGHTS, ARRAYS };

/* Sets counts and widths of a feature's arrays. The caller says whether they are given. */
void layout_arrays(struct array a[ARRAYS], uint64_t samples, uint64_t ids,
		   enum embeng_id_type type);

/* Bytes of a LOOKUP's descriptor, which comes first. */
uint64_t layout_input_head(size_t features);

/* Gives offsets from @at on to the arrays that are given and must be copied. Return: the end. */
uint64_t layout_copies(struct array *arrays, size_t count, uint64_t at);

/* Places the copies behind a LOOKUP's descriptor. Return: the bytes of all of it. */
uint64_t layout_input(struct array *arrays, size_t features);

/*
 * layout_outputs() - place the activations of each feature, and so its gradients
 * @outputs: [features]
 * @at: [features] set to byte offsets
 * @elements: [features] set to numbers of floats
 * @bytes: set to the bytes of all of them, at least 1
 *
 * Return: 0, or -ERANGE with a sentence.
 */
int layout_outputs(const struct embeng_model *model, const struct output *outputs, uint64_t *at,
		   uint64_t *elements, uint64_t *bytes);

/* Bytes of an UPDATE's descriptor, which comes first; the rates follow. */
uint64_t layout_update(const struct embeng_model *model);

/* Offset of the gradients behind the rates. If all gradients are in buffers, it is the size. */
uint64_t layout_update_head(const struct embeng_model *model);

/* Bytes that region_grow() allocates for @bytes: half as much again, since batches may grow. */
uint64_t layout_region(uint64_t bytes);

/* Bytes of staging memory for rows of this size, together with their row numbers. */
#define STAGING_HEAD 128u   /* bytes of the descriptor, which comes first */
#define STAGING_NUMBERS 16u /* for the number of each row, at most */
uint64_t layout_staging(uint64_t row);

/* Bytes of it that @count such rows need, in steps of four times as many, or all of it. */
uint64_t layout_staging_of(uint64_t row, uint64_t count);

#endif
