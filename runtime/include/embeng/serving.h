/* SPDX-License-Identifier: MIT */
/*
 * Serving: lookups on the CPU, from a memory-mapped checkpoint or from the tables of an
 * open engine. No queues, no slots, no steps. Included by embeng.h, whose rules hold.
 *
 * Meaning: the family's CPU lookup (cpu_embedding_lookup). It differs from the engine's
 * lookups on purpose:
 * - Unless a feature is unchecked_serving, negative ids are dropped from sparse inputs,
 *   and so are, for mean and sqrtn, ids whose weight is not above 0. Sparse inputs from
 *   rank 3 on are pruned always, ragged ones never.
 * - Weights must be finite, also those of dropped ids, unless the feature is
 *   unchecked_serving or the served model's policy is EMBENG_NON_FINITE_ALLOW.
 * - An id at or beyond the vocabulary is an error, and so is a negative one that is not
 *   dropped, whatever the table's out_of_range. Dropped ids are not checked.
 * - Dense ids of any shape are gathered; sparse inputs keep their leading dims, also
 *   where the feature has an output shape. Ragged ones fill it: as many rows as
 *   positions are combined, rows of which the positions are a multiple become sequences
 *   of that length, without weights; any other count is an error.
 * - Rows are read as they are stored: a table's quantization does not count.
 * A sequence is the first ids that are left, in order, then zeros. A bag of none is
 * zeros. Where nothing is dropped or quantized, the bits are those of the engine's lookup.
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
#define EMBENG_SERVING_TRUST (1u << 1)	/* check no parameters: the files are known to be whole */
#define EMBENG_SERVING_COPY (1u << 2)	/* check all parameters and copy them into memory at open */

/**
 * embeng_serving_open() - serve from a checkpoint
 * @dir: the folder; its files stay mapped, a later save there changes nothing here
 * @features: model with the features to serve; its tables are found in the checkpoint by
 *	name, and must have its rows and dim. Optimizers do not count. Copied. NULL:
 *	the features of the model that was saved
 * @flags: EMBENG_SERVING_*, at most one of them
 *
 * Parameters alone are read. Without a flag a chunk of 4 KiB is checked before its first
 * use, which that lookup waits for. VERIFY does it at open. TRUST maps the parameters at open
 * and never checks them, but the index and the headers, so that the first use of a row costs
 * like any other: for files that embeng_checkpoint_verify() has found whole before. Both have
 * the system gather the files in huge pages, which it does for files on tmpfs since Linux 6.1.
 * COPY checks the parameters of the served tables and copies them into the memory of the
 * process, rows * dim * 4 bytes for each table, in huge pages where the system has any. Lookups
 * are then as fast as the engine's on any file system, and the files are closed: whatever
 * happens to them later changes nothing.
 * Without COPY rows are read where the files are mapped: nobody may write into a shard or cut it while
 * a handle serves from it. A process that reads beyond the new end of a file gets SIGBUS, and
 * rows that were overwritten are not checked again. Saves never do this; a copy over the files of
 * a checkpoint does (cp, rsync --inplace): copy aside, then rename. Removing or renaming files
 * does no harm.
 * The handle works in the children of a fork, too. The environment's EMBENG_KERNEL
 * names the kernel variant, as for embeng_open(). Return: 0, -ENOENT (no checkpoint,
 * table), -EINVAL (shape, variant, several flags), -EBADMSG, -ENOTSUP (a newer schema), -EIO, -ENOMEM.
 */
EMBENG_API int embeng_serving_open(const char *dir, const struct embeng_model *features,
				   uint32_t flags, struct embeng_serving **out,
				   struct embeng_error *error);

/**
 * embeng_serving_live() - serve from the tables of an open engine
 * @e: must stay open longer; lookups see every complete update that was handed in
 * @features: as embeng_serving_open(); NULL: the engine's own
 *
 * A lookup reads the rows that it needs, of all its inputs as they are at one moment.
 * Return: as embeng_serving_open().
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
 * @shape: dense, sparse: [rank]; dense of any rank from 0, sparse from rank 2. The
 *	output's rank, without dim, is at most EMBENG_MAX_RANK
 * @rank: entries of @shape
 * @weights: sparse, ragged: [weight_count] or NULL: 1. Not for sequences
 * @weight_count: must equal @id_count when @weights is given
 * @out: f32, [output shape, dim], written whole, or untouched on failure
 * @out_elements: floats that @out has room for, checked
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
 * embeng_serving_shape() - compute the shape of the activations for @input
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
 * From a checkpoint: thread-safe, allocates nothing, takes no lock. Over an engine:
 * thread-safe, but one lookup or row access at a time, as embeng_rows_read(), and it
 * allocates. All inputs are checked before anything is written; they must not change
 * meanwhile. Return: 0, -EINVAL (form, shape, weights with dense or sequence), -ERANGE
 * naming feature, sample and id or weight, -ENOENT (feature), -EBADMSG (a corrupt chunk: file and
 * offset), -EIO; over an engine also -ENOMEM and what embeng_rows_read() returns, as
 * -ETIME while only some replicas looked a pipelined step up.
 */
EMBENG_API int embeng_serving_lookup(const struct embeng_serving *serving,
				     const struct embeng_serving_input *inputs, size_t count);

#ifdef __cplusplus
}
#endif

#endif
