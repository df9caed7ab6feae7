/* SPDX-License-Identifier: MIT */
/* Tables and features: what a model is. Included by embeng.h, whose rules hold. */
#ifndef EMBENG_MODEL_API_H
#define EMBENG_MODEL_API_H

#include "error.h"
#include "optimizer.h"
#include "schedule.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng_model;

enum embeng_combiner_name { EMBENG_MEAN, EMBENG_SUM, EMBENG_SQRTN, EMBENG_MAX };

enum embeng_policy {
	EMBENG_POLICY_ERROR, /* an id outside its table is an error */
	EMBENG_POLICY_CLAMP, /* nearest row */
	EMBENG_POLICY_DROP,  /* as if absent */
	EMBENG_POLICY_ZERO,  /* counts in the denominator, reads zeros */
};

enum embeng_initializer_name {
	EMBENG_INIT_DEFAULT,	      /* truncated normal, deviation 1 / sqrt(dim); of a
				       * slot: what the optimizer starts it with */
	EMBENG_INIT_CONSTANT,	      /* a */
	EMBENG_INIT_UNIFORM,	      /* [a, b) */
	EMBENG_INIT_TRUNCATED_NORMAL, /* mean a, deviation b, within two deviations */
};

/**
 * struct embeng_initializer - how rows start
 * @kind: enum embeng_initializer_name
 * @a: see the kinds
 * @b: see the kinds
 * @seed: any number; rows of a kind that is random depend on it, on the table's name and on their
 *	number, and so start the same for every core and host count and in every model
 */
struct embeng_initializer {
	enum embeng_initializer_name kind;
	float a, b;
	uint64_t seed;
};

/**
 * struct embeng_slot_start - how one slot starts, instead of as its optimizer says
 * @slot: name, as "accumulators"
 * @initializer: as of parameters
 */
struct embeng_slot_start {
	const char *slot;
	struct embeng_initializer initializer;
};

/**
 * struct embeng_quantization - simulated quantization of what lookups on a device read
 * @num_buckets: levels, from 2; 0: no quantization, the rest is ignored
 * @lower: lowest level, finite
 * @upper: highest, finite and above @lower
 *
 * A lookup, training or inference, reads of each element x of a row, in f32,
 * lower + q * floor((c - lower) / q + 0.5), with q = (upper - lower) / (num_buckets - 1)
 * and c = x clipped to [lower, upper], before weights and combiner. Stored rows and
 * gradients are not quantized: the gradient passes as if nothing were done. Zeros of
 * missing positions and of EMBENG_POLICY_ZERO stay zeros. Serving lookups
 * (embeng/serving.h), as the family's on the CPU, do not quantize. A q that f32 cannot
 * say as a normal number is refused. Source: QuantizationConfig of the TPU embedding API.
 */
struct embeng_quantization {
	int64_t num_buckets;
	float lower, upper;
};

/**
 * struct embeng_table_part - the place of a table in a larger one, of which it is a part
 * @rows: rows of the whole table, at least as many as the table has; 0: the table is no part of
 *	another, and the rest is ignored
 * @first_row: row of the whole table that row 0 is
 * @row_step: rows of the whole table from one row to the next; 0 is 1. A run of rows has 1, every
 *	n-th row n
 * @dim: columns of the whole table, at least as many as the table has; 0: as many
 * @first_column: column of the whole table that column 0 is
 *
 * Rows of the part start with the numbers that they have in the whole table, if this has the same
 * name, initializers and slot starts: at embeng_open(), by embeng_rows_fill() and by
 * embeng_shard_start(). EMBENG_INIT_DEFAULT takes the @dim of the whole. A slot of one number a row
 * starts alike in all parts of a row.
 *
 * All else is the part's: ids, errors, statistics and checkpoints count its rows from 0, and its
 * optimizer knows no columns but its own. So an optimizer with such a slot, and max_norm, train a
 * table that is cut by columns otherwise than the whole.
 */
struct embeng_table_part {
	int64_t rows;
	int64_t first_row;
	int64_t row_step;
	int64_t dim;
	int64_t first_column;
};

/**
 * struct embeng_table_config - one table
 * @size: sizeof(struct embeng_table_config)
 * @name: unique; NULL: "table_" and its index
 * @vocabulary_size: rows, from 1
 * @dim: columns, from 1 up to what the device has, which embeng_open() asks (&struct
 *	embeng_device_info.dim, 4096 for the soft device); more is -ERANGE with the table's name
 * @combiner: combiner of pooled features; 0 is mean
 * @optimizer: zeroed: none. Training then leaves the table alone for good, as if it were frozen;
 *	a model of such tables only is for inference alone
 * @initializer: how rows start
 * @out_of_range: policy for ids outside the table
 * @slot_starts: [slot_start_count], each slot at most once; copied
 * @slot_start_count: how many
 * @quantization: zeroed: none
 * @frozen: the table starts frozen (embeng_table_freeze()). It is the program's: no hash,
 *	checkpoint or protobuf has it
 * @part: zeroed: the table is whole. A part needs a device that has the capability "shards", else
 *	embeng_open() fails with -ENOTSUP
 */
struct embeng_table_config {
	size_t size;
	const char *name;
	int64_t vocabulary_size;
	int64_t dim;
	enum embeng_combiner_name combiner;
	struct embeng_optimizer optimizer;
	struct embeng_initializer initializer;
	enum embeng_policy out_of_range;
	const struct embeng_slot_start *slot_starts;
	size_t slot_start_count;
	struct embeng_quantization quantization;
	int frozen;
	struct embeng_table_part part;
};

#define EMBENG_MAX_RANK 8

/**
 * struct embeng_feature_config - one feature
 * @size: sizeof(struct embeng_feature_config)
 * @name: unique; NULL: "feature_" and its index
 * @table: index that embeng_model_add_table() returned
 * @max_sequence_length: 0 pools; L > 0 keeps the first L ids in order, output
 *	[samples, L, dim], unless an output shape is given
 * @output_rank: entries of @output_shape; 0: open, each batch has its own shape
 * @output_shape: shape of the output without the trailing dim
 * @check_weights: refuse weights that are not finite also where the model's policy is
 *	EMBENG_NON_FINITE_ALLOW; all other models refuse them anyway
 * @unchecked_serving: serving lookups take weights and ids as they are
 *	(validate_weights_and_indices off; embeng/serving.h)
 * @max_samples: most samples of a batch, 0: any. A hint that reserves memory
 * @max_ids: most ids of a batch, 0: any
 * @v1_dense_zero_is_padding: a dense input [samples] or [samples, n] is bags of its ids
 *	other than 0, as the first interface of the family had it; without it, 0 is a row
 *	like any other. Sparse and ragged inputs and serving lookups keep their ids
 */
struct embeng_feature_config {
	size_t size;
	const char *name;
	int table;
	int64_t max_sequence_length;
	size_t output_rank;
	int64_t output_shape[EMBENG_MAX_RANK];
	int check_weights;
	uint64_t max_samples;
	uint64_t max_ids;
	int unchecked_serving;
	int v1_dense_zero_is_padding;
};

/* The distribution of a table's rows over hosts (embeng/shard.h). */
enum embeng_sharding {
	EMBENG_SHARDING_DIV, /* a run of successive rows */
	EMBENG_SHARDING_MOD, /* every hosts-th row */
};

/*
 * The policy for gradients that are not finite (infinite or NaN). Weights and gains that are not are
 * refused, naming feature, sample and value, unless the policy is ALLOW.
 */
enum embeng_non_finite {
	EMBENG_NON_FINITE_ERROR, /* refuse the update before any row is touched */
	EMBENG_NON_FINITE_DROP,	 /* leave the rows as they are that such a gradient reaches */
	EMBENG_NON_FINITE_ALLOW, /* take them as they are; rows may then be written so, too */
};

/**
 * struct embeng_engine_config - options of the whole model
 * @size: sizeof(struct embeng_engine_config)
 * @replicas: 0 is 1
 * @pipelining: lookup n + 1 may run before update n is applied: activations are
 *	stale by exactly one step. Calls that only look (embeng_rows_read(), embeng_stats(),
 *	embeng_save(), inference lookups, embeng_flush(), embeng_table_freeze()) see every update
 *	that was handed in, and change nothing about that. Calls that write rows
 *	(embeng_rows_write(), embeng_rows_fill(), embeng_restore()) come after these updates,
 *	and the next lookup sees the updates and what was written
 * @step_depth: steps ahead, 0: the device's
 * @hosts: shards of a table that embeng_save() writes, up to INT32_MAX; 0 is 1. Changes
 *	no number that is computed, and is no part of embeng_model_hash()
 * @sharding: distribution of rows over @hosts
 * @non_finite: policy for gradients that are not finite; DROP and ALLOW count the rows that they
 *	reach in &struct embeng_table_stats.nonfinite_gradient_rows
 * @fixed_shapes: the first batch that is accepted fixes the output shapes that are open, and a
 *	batch of another shape or without samples is -EINVAL, as in TPUEmbedding. Without it each
 *	batch has the size that it has, zero samples included. Is no part of embeng_model_hash()
 */
struct embeng_engine_config {
	size_t size;
	uint32_t replicas;
	int pipelining;
	uint32_t step_depth;
	uint32_t hosts;
	enum embeng_sharding sharding;
	enum embeng_non_finite non_finite;
	int fixed_shapes;
};

/** embeng_model_new() - an empty model, NULL when out of memory */
EMBENG_API struct embeng_model *embeng_model_new(void);
/** embeng_model_free() - NULL is fine; an open &struct embeng keeps its own copy */
EMBENG_API void embeng_model_free(struct embeng_model *model);

/**
 * embeng_model_add_table() - add a table; its order is the order of addition
 *
 * Return: its index, or -EINVAL, -ERANGE, -EEXIST, -ENOENT (slot of a start), -ENOMEM.
 */
EMBENG_API int embeng_model_add_table(struct embeng_model *model,
				      const struct embeng_table_config *config);

/**
 * embeng_model_add_feature() - add a feature of a table
 *
 * Return: its index, or -EINVAL, -ERANGE, -ENOENT (no such table), -EEXIST, -ENOMEM.
 */
EMBENG_API int embeng_model_add_feature(struct embeng_model *model,
					const struct embeng_feature_config *config);

/**
 * embeng_model_set_engine() - set the options of the whole model
 * @config: copied
 *
 * Return: 0, -EINVAL, -ERANGE.
 */
EMBENG_API int embeng_model_set_engine(struct embeng_model *model,
				       const struct embeng_engine_config *config);

/**
 * embeng_model_table() / embeng_model_feature() - index of a name
 *
 * Return: the index, or -ENOENT.
 */
EMBENG_API int embeng_model_table(const struct embeng_model *model, const char *name);
EMBENG_API int embeng_model_feature(const struct embeng_model *model, const char *name);

/** how many there are; 0 for NULL */
EMBENG_API size_t embeng_model_table_count(const struct embeng_model *model);
EMBENG_API size_t embeng_model_feature_count(const struct embeng_model *model);

/** names by index, NULL beyond the count; valid as long as the model */
EMBENG_API const char *embeng_model_table_name(const struct embeng_model *model, size_t table);
EMBENG_API const char *embeng_model_feature_name(const struct embeng_model *model, size_t feature);

/** dynamic rates and hyperparameters, in the order in which tables first named them */
EMBENG_API size_t embeng_model_rate_count(const struct embeng_model *model);
EMBENG_API const char *embeng_model_rate_name(const struct embeng_model *model, size_t rate);

/**
 * embeng_model_set_schedule() - have a dynamic rate follow the step
 * @rate: as tables' optimizers name it, by rate_name or in dynamic
 * @schedule: copied, arrays too; NULL: the program gives the rate again
 *
 * embeng_apply_gradients() then needs no value of this rate: it takes that of
 * embeng_schedule_rate() at the count of updates, those before a restore too; a value that
 * the program gives all the same counts instead. The step is the same for all replicas. A
 * context that processes share does not follow it (the rate is missing, -EINVAL). It is the
 * program's: no hash, checkpoint or protobuf has it. Devices that are open keep what they
 * have.
 *
 * Return: 0, -EINVAL, -ERANGE, -ENOENT (no table names this rate), -ENOMEM.
 */
EMBENG_API int embeng_model_set_schedule(struct embeng_model *model, const char *rate,
					 const struct embeng_schedule *schedule);

/** embeng_model_schedule() - that of a rate by index, the model's; NULL: it has none */
EMBENG_API const struct embeng_schedule *embeng_model_schedule(const struct embeng_model *model,
							       size_t rate);

/**
 * embeng_model_slot_width() - how many numbers a slot has for each row
 * @slot: its name; NULL: the parameters
 *
 * Any thread may call while nobody changes the model.
 *
 * Return: the table's dim, or 1 for a slot of one number a row; -EINVAL, -ENOENT.
 */
EMBENG_API int64_t embeng_model_slot_width(const struct embeng_model *model, int table,
					   const char *slot);

/** slots of a table, in checkpoint order; without the parameters */
EMBENG_API size_t embeng_model_slot_count(const struct embeng_model *model, size_t table);
EMBENG_API const char *embeng_model_slot_name(const struct embeng_model *model, size_t table,
					      size_t slot);

/**
 * embeng_model_get_table() - read the configuration of a table, with defaults filled in
 * @config: its size set by the caller; names and arrays are the model's
 *
 * Only the slot starts that were given are in it. A part that has all rows and columns of its whole
 * table in their order is none. Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_model_get_table(const struct embeng_model *model, size_t table,
				      struct embeng_table_config *config);

/**
 * embeng_model_get_feature() - likewise of a feature
 *
 * The max_sequence_length of one with an output shape, which pools it, is 0.
 * Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_model_get_feature(const struct embeng_model *model, size_t feature,
					struct embeng_feature_config *config);

/**
 * embeng_model_get_engine() - the options of the whole model
 * @config: its size set by the caller; replicas and hosts are never 0
 *
 * Return: 0, -EINVAL.
 */
EMBENG_API int embeng_model_get_engine(const struct embeng_model *model,
				       struct embeng_engine_config *config);

/** embeng_model_hash() - equal for models that mean the same; batches carry it */
EMBENG_API uint64_t embeng_model_hash(const struct embeng_model *model);

/**
 * embeng_model_blob() - the model as the engine takes it (embeng_engine.h)
 * @bytes: out, malloc'd, the caller frees it
 * @length: out
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
EMBENG_API int embeng_model_blob(const struct embeng_model *model, void **bytes, size_t *length);

/* -- output shapes before the first batch -------------------------------- */

/**
 * struct embeng_shape - a shape without the trailing dim
 * @rank: entries of @dims; 0: unknown
 * @dims: 0 where a length is unknown
 */
struct embeng_shape {
	size_t rank;
	int64_t dims[EMBENG_MAX_RANK];
};

/**
 * embeng_model_build() - fix the output shapes that are open, from a batch size
 * @batch_size: samples of each feature, from 1
 *
 * A feature's shape becomes [batch_size], or [batch_size, max_sequence_length] of a
 * sequence feature. Lengths in output_shape stay, and unknown ones are filled in;
 * a known length that differs is -EINVAL ("inconsistent shape"), and so is one that
 * stays unknown ("not fully defined"). An output_shape of higher rank is not
 * compared: the batch fills it in row-major order. A feature that is built already
 * stays, so that a second call does nothing. Devices that are open keep what they
 * have. Source: TPUEmbedding.build(), semantics of an integer argument.
 *
 * Return: 0, -EINVAL, -ERANGE (below 1, or more positions than 64 bits count) naming
 * the feature; on failure no feature changed.
 */
EMBENG_API int embeng_model_build(struct embeng_model *model, int64_t batch_size);

/**
 * embeng_model_build_shapes() - fix the output shapes from the shapes of inputs
 * @shapes: [count], one a feature in feature order; rank 0: leave this one open
 *
 * A rank of 1 is the output's shape itself; of more, the last dimension is dropped;
 * [B, L] of a sequence feature gives [B, max_sequence_length], but [B, 1] is one id a
 * position, so [B]. The result is compared with output_shape as
 * embeng_model_build() does; a rank of 1 or 2 below output_shape's is not. A length of
 * 0 is unknown: fine when output_shape has it, else -EINVAL ("not fully defined").
 *
 * Return: 0, -EINVAL (count, a rank above EMBENG_MAX_RANK, see above), -ERANGE (a
 * negative length, more positions than 64 bits count) naming the feature; on failure no
 * feature changed.
 */
EMBENG_API int embeng_model_build_shapes(struct embeng_model *model,
					 const struct embeng_shape *shapes, size_t count);

/**
 * embeng_model_output_shape() - a feature's output shape as far as it is known
 * @shape: out; rank 0 when it is open, a length of 0 where that is. A shape that a device's
 *	first batch fixed (@fixed_shapes) belongs to the device, not to the model
 *
 * Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_model_output_shape(const struct embeng_model *model, size_t feature,
					 struct embeng_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
