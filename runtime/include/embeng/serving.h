/* SPDX-License-Identifier: MIT */
/*
 * Serving: lookups on the CPU, from a memory-mapped checkpoint or from the tables of an
 * open engine. No queues, no slots, no steps. Included by embeng.h, whose rules hold.
 *
 * Meaning: the family's CPU lookup (cpu_embedding_lookup). It differs from the engine's
 * lookups on purpose: unless a feature is unchecked_serving, negative ids are dropped
 * from sparse inputs, and so are, for mean and sqrtn, ids whose weight is not above 0.
 * Ragged inputs are never pruned. An id at or beyond the vocabulary is an error. Where
 * nothing is pruned, the bits are those of the engine's lookup.
 */
#ifndef EMBENG_SERVING_API_H
#define EMBENG_SERVING_API_H

#include "error.h"
#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng;
struct embeng_serving;

#define EMBENG_SERVING_VERIFY (1u << 0) /* check all parameters at open, not on first use */

/**
 * embeng_serving_open() - serve from a checkpoint
 * @dir: the folder; its files stay mapped, a later save there changes nothing here
 * @features: whose features to serve; its tables are found in the checkpoint by
 *	name, and must have its rows and dim. Optimizers do not count. Copied. NULL:
 *	the features of the model that was saved
 * @flags: EMBENG_SERVING_*
 *
 * Parameters alone are read. Without VERIFY a chunk is checked before its first use.
 * Return: 0, -ENOENT, -EINVAL (shape), -EBADMSG, -ENOMEM.
 */
EMBENG_API int embeng_serving_open(const char *dir, const struct embeng_model *features,
				   uint32_t flags, struct embeng_serving **out,
				   struct embeng_error *error);

/**
 * embeng_serving_live() - serve from the tables of an open engine
 * @e: must stay open longer; lookups see every complete update that was handed in
 * @features: as embeng_serving_open(); NULL: the engine's own
 */
EMBENG_API int embeng_serving_live(struct embeng *e, const struct embeng_model *features,
				   struct embeng_serving **out, struct embeng_error *error);

/** embeng_serving_close() - unmap everything. NULL is fine */
EMBENG_API void embeng_serving_close(struct embeng_serving *serving);

/** embeng_serving_model() - the features that are served; the handle's own */
EMBENG_API const struct embeng_model *embeng_serving_model(const struct embeng_serving *serving);

enum embeng_input_form { EMBENG_DENSE, EMBENG_SPARSE, EMBENG_RAGGED };

/**
 * struct embeng_serving_input - one feature's ids, and where its activations go
 * @size: sizeof(struct embeng_serving_input)
 * @feature: index in the served features
 * @form: enum embeng_input_form
 * @type: enum embeng_id_type of @ids
 * @ids: [id_count]
 * @id_count: ids
 * @indices: sparse: [id_count][rank], samples never fall in row-major order
 * @row_splits: ragged: [split_count], from 0 up to @id_count
 * @split_count: rows + 1
 * @shape: dense, sparse: [rank]; dense of any rank, sparse from rank 2
 * @rank: of @shape
 * @weights: sparse, ragged: [weight_count] or NULL: 1. Not for sequences
 * @weight_count: must equal @id_count when @weights is given
 * @out: f32, [output shape, dim], written whole, or untouched on failure
 * @out_elements: floats behind @out, checked
 */
struct embeng_serving_input {
	size_t size;
	int feature;
	enum embeng_input_form form;
	int type;
	const void *ids;
	size_t id_count;
	const int64_t *indices;
	const int64_t *row_splits;
	size_t split_count;
	const int64_t *shape;
	size_t rank;
	const float *weights;
	size_t weight_count;
	float *out;
	size_t out_elements;
};

/**
 * embeng_serving_shape() - what a lookup of @input will give
 * @input: @out is not looked at
 * @shape: out, [rank], output shape and then dim; room for EMBENG_MAX_RANK + 1
 * @rank: out
 *
 * Return: 0, or -EINVAL as embeng_serving_lookup() says it.
 */
EMBENG_API int embeng_serving_shape(const struct embeng_serving *serving,
				    const struct embeng_serving_input *input, int64_t *shape,
				    size_t *rank);

/**
 * embeng_serving_lookup() - look features up
 * @inputs: [count], any features, also the same one twice
 *
 * From a checkpoint: thread-safe, allocates nothing, takes no lock. All inputs are
 * checked before anything is written. Return: 0, -EINVAL (form, shape, weights with
 * dense or sequence), -ERANGE naming feature, sample and id, -ENOENT (feature),
 * -EBADMSG (a corrupt chunk: file and offset).
 */
EMBENG_API int embeng_serving_lookup(const struct embeng_serving *serving,
				     const struct embeng_serving_input *inputs, size_t count);

#ifdef __cplusplus
}
#endif

#endif
