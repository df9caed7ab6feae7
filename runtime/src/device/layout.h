/* SPDX-License-Identifier: MIT */
/*
 * Where things lie in the buffers of a step, and how large that makes them. What
 * a session allocates and what a plan foretells are the same calls.
 */
#ifndef EMBENG_LAYOUT_H
#define EMBENG_LAYOUT_H

#include "batch/batch.h"
#include "model/model.h"
#include "wire.h"

/* An array that a descriptor names. */
struct array {
	const void *data; /* the caller's; NULL: not given */
	uint64_t count, width;
	uint64_t at; /* of its copy */
	bool in_place;
	struct embeng_mem mem;
};

/* Arrays of a feature, one after another in struct slot. */
enum { OFFSETS, IDS, WEIGHTS, ARRAYS };

/* Counts and widths of a feature's arrays; whether they are given is the caller's to say. */
void layout_arrays(struct array a[ARRAYS], uint64_t samples, uint64_t ids,
		   enum embeng_id_type type);

/* Bytes of a LOOKUP's descriptor, which stands first. */
uint64_t layout_input_head(size_t features);

/* Places the copies of arrays that are given and not in place behind @at. Return: the end. */
uint64_t layout_copies(struct array *arrays, size_t count, uint64_t at);

/* So, behind a LOOKUP's descriptor. Return: bytes in all. */
uint64_t layout_input(struct array *arrays, size_t features);

/*
 * layout_outputs() - where each feature's activations stand, and so its gradients
 * @outputs: [features]
 * @at: [features] out: byte offset
 * @elements: [features] out: floats
 * @bytes: out: of all of them, at least one
 *
 * Return: 0, or -ERANGE with a sentence.
 */
int layout_outputs(const struct embeng_model *model, const struct output *outputs, uint64_t *at,
		   uint64_t *elements, uint64_t *bytes);

/* Bytes of an UPDATE's descriptor, which stands first; the rates follow. */
uint64_t layout_update(const struct embeng_model *model);

/* Where gradients begin behind them: bytes of the memory when all lie in buffers. */
uint64_t layout_update_head(const struct embeng_model *model);

/* Bytes that region_grow() takes for so many: a half more, so that batches may creep up. */
uint64_t layout_region(uint64_t bytes);

/* Bytes of the staging memory that moves rows of so many bytes, with their numbers. */
#define STAGING_HEAD 128u /* the descriptor stands first */
uint64_t layout_staging(uint64_t row);

#endif
