/* SPDX-License-Identifier: MIT */
/*
 * The first interface of the family: configurations by dictionaries or feature columns, and
 * what steps look like there. Included by embeng.h, whose rules hold.
 *
 * A specification becomes a model whose tables and features are sorted by the bytes of
 * their names. Activations of a table are packed per sample, [batch, num_features, dim]:
 * the features in their order, a sequence feature with as many places as its
 * max_sequence_length, any other with one. Dense inputs are bags of their ids other than
 * 0. Sequence lengths, at most max_sequence_length, are &struct embeng_view.lengths. The
 * gradient multiplier of a step is &struct embeng_gradients.multiplier.
 *
 * Source: EmbeddingConfigSpec, TPUEmbedding, embedding_column and
 * shared_embedding_columns of the TPU estimator.
 */
#ifndef EMBENG_CLASSIC_API_H
#define EMBENG_CLASSIC_API_H

#include "error.h"
#include "model.h"
#include "tpu.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng;
struct embeng_activations;
struct embeng_rate;
struct embeng_classic;

/* -- one form of specification: tables and features ---------------------- */

/**
 * struct embeng_classic_table - an entry of table_to_config_dict
 * @size: sizeof(struct embeng_classic_table)
 * @name: name of the table
 * @vocabulary_size: rows, from 1
 * @dimension: columns, from 1
 * @initializer: how rows start
 * @combiner: combiner of its features that are no sequences
 * @optimizer: NULL: that of the specification
 * @has_learning_rate: @learning_rate counts, in place of the optimizer's
 * @learning_rate: not beside @rate_name
 * @rate_name: learning_rate_fn: name of a dynamic rate, given with every step; or NULL
 */
struct embeng_classic_table {
	size_t size;
	const char *name;
	int64_t vocabulary_size, dimension;
	struct embeng_initializer initializer;
	enum embeng_combiner_name combiner;
	const struct embeng_optimizer *optimizer;
	int has_learning_rate;
	float learning_rate;
	const char *rate_name;
};

/**
 * struct embeng_classic_feature - an entry of feature_to_config_dict
 * @size: sizeof(struct embeng_classic_feature)
 * @name: name of the feature
 * @table: name of its table
 * @max_sequence_length: 0: combined
 * @weight_key: name of what holds its weights, or NULL; for the program to look up
 */
struct embeng_classic_feature {
	size_t size;
	const char *name;
	const char *table;
	int64_t max_sequence_length;
	const char *weight_key;
};

/* -- the other form: feature columns ------------------------------------- */

/**
 * struct embeng_classic_categorical - a categorical column
 * @size: sizeof(struct embeng_classic_categorical)
 * @name: name of the column, which is the feature's name, too
 * @num_buckets: ids 0 to num_buckets - 1
 * @weight_key: key of a weighted categorical column, whose own name is then
 *	"NAME_weighted_by_KEY"; or NULL
 * @sequence: ids are kept in order
 * @max_sequence_length: from 1 of a sequence, else 0
 */
struct embeng_classic_categorical {
	size_t size;
	const char *name;
	int64_t num_buckets;
	const char *weight_key;
	int sequence;
	int64_t max_sequence_length;
};

/**
 * struct embeng_classic_column - embedding_column or shared_embedding_columns
 * @size: sizeof(struct embeng_classic_column)
 * @categorical: [categorical_count]
 * @categorical_count: 1 unless @shared, then from 1
 * @shared: one table for all of them; their num_buckets must be equal
 * @collection_name: name of a @shared collection; NULL: the columns' names, sorted, joined by "_",
 *	and "_shared_embedding"
 * @dimension: columns of the table, from 1
 * @combiner: combiner of columns that are no sequences
 * @initializer: how rows start
 * @rate_name: learning_rate_fn: name of a dynamic rate, or NULL
 *
 * Its table is "tbl_" and the categorical column's own name, or the collection's.
 */
struct embeng_classic_column {
	size_t size;
	const struct embeng_classic_categorical *categorical;
	size_t categorical_count;
	int shared;
	const char *collection_name;
	int64_t dimension;
	enum embeng_combiner_name combiner;
	struct embeng_initializer initializer;
	const char *rate_name;
};

enum embeng_classic_mode {
	EMBENG_CLASSIC_TRAINING,
	EMBENG_CLASSIC_INFERENCE,
	/* activations come from elsewhere, gradients are applied as ever */
	EMBENG_CLASSIC_BACKWARD_PASS_ONLY,
};

/**
 * struct embeng_classic_spec - EmbeddingConfigSpec
 * @size: sizeof(struct embeng_classic_spec)
 * @columns: [column_count], or none
 * @column_count: how many
 * @tables: [table_count], or none; exactly one of @columns and the pair of @tables and
 *	@features is given
 * @table_count: how many
 * @features: [feature_count]
 * @feature_count: how many
 * @optimizer: optimization_parameters: sgd, adagrad, proximal_adagrad, adam, ftrl,
 *	momentum or rms_prop; see embeng_classic_optimizer(). None for inference
 * @has_clipping_limit: @clipping_limit counts
 * @clipping_limit: gradients of rows are clipped to [-limit, limit]; switches
 *	accumulation on where sgd has it off
 * @pipelining: pipeline_execution_with_tensor_core
 * @partition_strategy: "div" or "mod"; NULL: "div"
 * @profile_directory: kept for the protobuf, and for embeng_profile_open(); or NULL
 * @batch_size: samples of all replicas together, a multiple of their number
 * @replicas: 0 is 1
 * @hosts: 0 is 1
 * @mode: enum embeng_classic_mode
 */
struct embeng_classic_spec {
	size_t size;
	const struct embeng_classic_column *columns;
	size_t column_count;
	const struct embeng_classic_table *tables;
	size_t table_count;
	const struct embeng_classic_feature *features;
	size_t feature_count;
	struct embeng_optimizer optimizer;
	int has_clipping_limit;
	float clipping_limit;
	int pipelining;
	const char *partition_strategy;
	const char *profile_directory;
	int64_t batch_size;
	uint32_t replicas, hosts;
	enum embeng_classic_mode mode;
};

/**
 * embeng_classic_new() - make tables and features from a specification
 * @spec: copied, with all that it points to
 * @error: out, or NULL
 *
 * Return: 0, -EINVAL (both forms or none, partition_strategy, an optimizer that the
 * interface did not have, rate and rate_name, num_buckets, sequence lengths), -ENOENT (a
 * feature of no table), -EEXIST (a feature or a table twice), -ERANGE, -ENOMEM.
 */
EMBENG_API int embeng_classic_new(const struct embeng_classic_spec *spec,
				  struct embeng_classic **out, struct embeng_error *error);
/** embeng_classic_free() - NULL is fine */
EMBENG_API void embeng_classic_free(struct embeng_classic *classic);

/** embeng_classic_model() - for embeng_open(); the classic's own */
EMBENG_API const struct embeng_model *embeng_classic_model(const struct embeng_classic *classic);

/**
 * embeng_classic_settings() - for embeng_tpu_export(): mode, hosts, sharding, directory
 * @settings: out, its size set by the caller; texts are the classic's
 *
 * Features are told by num_features and batch_size_per_tensor_core. Return: 0, -EINVAL.
 */
EMBENG_API int embeng_classic_settings(const struct embeng_classic *classic,
				       struct embeng_tpu_settings *settings);

/** embeng_classic_weight_key() - the weight key of a feature, or NULL */
EMBENG_API const char *embeng_classic_weight_key(const struct embeng_classic *classic,
						 size_t feature);

/**
 * embeng_classic_optimizer() - an optimizer with the defaults of this interface
 * @optimizer: out
 *
 * As the function of its kind, but for adam's epsilon, 1e-8, and sgd's accumulation,
 * which is off. Return: 0, -EINVAL for those that the interface did not have.
 */
EMBENG_API int embeng_classic_optimizer(enum embeng_optimizer_name kind, float learning_rate,
					struct embeng_optimizer *optimizer);

/**
 * embeng_classic_slot_suffix() - the text that a slot's variable had behind its table's name
 * @slot: index, as of embeng_model_slot_name()
 *
 * "/Adagrad", "/ProximalAdagrad", "/Adam/m", "/Adam/v", "/Ftrl" (accumulators), "/Ftrl_1"
 * (linears), "/Momentum", "/RMSProp/ms", "/RMSProp/mom"; NULL for any other.
 */
EMBENG_API const char *embeng_classic_slot_suffix(enum embeng_optimizer_name kind, size_t slot);

/* -- batches by number --------------------------------------------------- */

/**
 * embeng_classic_counts() - batch size and num_features, where every feature has a shape
 * @batch_size: out: the greatest common divisor of all features' positions
 * @num_features: out: [tables], positions of each table's features in such batches
 *
 * It works for any model whose output shapes are known (embeng_model_build()). For shapes [4] and
 * [6] the batch size is 2, num_features are 2 and 3. Return: 0, -EINVAL, -ERANGE.
 */
EMBENG_API int embeng_classic_counts(const struct embeng_model *model, int64_t *batch_size,
				     int64_t *num_features);

/* -- activations packed per sample --------------------------------------- */

/**
 * struct embeng_classic_packing - the packed activations of a table
 * @batch_size: samples of one replica
 * @num_features: places of a sample
 * @dim: columns
 */
struct embeng_classic_packing {
	int64_t batch_size, num_features, dim;
};

/**
 * embeng_classic_packing() - shape of a table's packed activations and gradients
 * @packing: out
 *
 * Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_classic_packing(const struct embeng_classic *classic, size_t table,
				      struct embeng_classic_packing *packing);

/**
 * embeng_classic_place() - find the places of a feature in a sample
 * @first: out
 * @count: out: 1, or max_sequence_length
 *
 * Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_classic_place(const struct embeng_classic *classic, size_t feature,
				    int64_t *first, int64_t *count);

/**
 * embeng_classic_pack() - a table's activations, packed per sample
 * @activations: result of embeng_dequeue() on a device with this model
 * @data: out: [batch_size, num_features, dim]
 * @elements: floats that @data has room for
 *
 * Return: 0, -EINVAL (room, another model's activations), -ENOENT (table), -EPROTO in the
 * mode of the backward pass alone.
 */
EMBENG_API int embeng_classic_pack(const struct embeng_classic *classic,
				   const struct embeng_activations *activations, size_t table,
				   float *data, size_t elements);

/**
 * struct embeng_classic_gradients - packed gradients of a step
 * @size: sizeof(struct embeng_classic_gradients)
 * @replica: replica whose step it is
 * @tables: [table_count] each [batch_size, num_features, dim]; NULL: zeros
 * @table_count: tables of the model
 * @rates: [rate_count], every dynamic rate of the model once
 * @rate_count: how many
 * @multiplier: as &struct embeng_gradients.multiplier
 * @has_multiplier: as &struct embeng_gradients.has_multiplier
 */
struct embeng_classic_gradients {
	size_t size;
	uint32_t replica;
	const float *const *tables;
	size_t table_count;
	const struct embeng_rate *rates;
	size_t rate_count;
	float multiplier;
	int has_multiplier;
};

/**
 * embeng_classic_apply() - hand in the packed gradients of a step
 * @timeout_ns: as of embeng_apply_gradients()
 *
 * They are copied on return. In the mode of the backward pass alone there is no dequeue
 * before it: it is the oldest enqueued batch of the replica that they are for. Return: 0,
 * -EINVAL (count, another model's engine), -EPROTO in the mode of inference, and as
 * embeng_apply_gradients().
 */
EMBENG_API int embeng_classic_apply(const struct embeng_classic *classic, struct embeng *e,
				    const struct embeng_classic_gradients *gradients,
				    int64_t timeout_ns);

#ifdef __cplusplus
}
#endif

#endif
