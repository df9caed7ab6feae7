/* SPDX-License-Identifier: MIT */
/*
 * Models as the protobuf that TPU embeddings are configured with. Included by embeng.h, whose
 * rules hold. A library that was built without protobufs has these functions, too: they return
 * -ENOTSUP.
 */
#ifndef EMBENG_TPU_API_H
#define EMBENG_TPU_API_H

#include "model.h"
#include "stacking.h"

#ifdef __cplusplus
extern "C" {
#endif

enum embeng_tpu_mode {
	EMBENG_TPU_MODE_DEFAULT, /* training; inference when no table has an optimizer */
	EMBENG_TPU_INFERENCE,
	EMBENG_TPU_TRAINING,
	EMBENG_TPU_BACKWARD_PASS_ONLY,
};

/* How features are told: the protobuf has had more than one way. */
enum embeng_tpu_form {
	EMBENG_TPU_FEATURES, /* a feature_descriptor each, and nothing else */
	EMBENG_TPU_COUNTS,   /* num_features of each table and batch_size_per_tensor_core */
	EMBENG_TPU_BOTH,
};

enum embeng_tpu_sharding { EMBENG_TPU_DIV, EMBENG_TPU_MOD };

enum embeng_tpu_hot_ids {
	EMBENG_TPU_HOT_IDS_UNSPECIFIED,
	EMBENG_TPU_HOT_IDS_ENABLED,
	EMBENG_TPU_HOT_IDS_DISABLED,
	EMBENG_TPU_HOT_IDS_MIGRATION_ONLY,
};

/**
 * struct embeng_tpu_settings - contents of the protobuf beside the model
 * @size: sizeof(struct embeng_tpu_settings)
 * @mode: enum embeng_tpu_mode
 * @form: enum embeng_tpu_form
 * @sharding: distribution of tables over hosts; changes no result
 * @hosts: 0: those of the model's engine options, and their sharding
 * @profile_directory: NULL is ""; UTF-8
 * @spmd: spmd_sharding is enabled
 * @spmd_manual: its manual_partitioning
 * @spmd_cores_per_replica: its num_cores_per_replica
 * @hot_ids: [hot_id_count], hot_id_replication_configuration of each table; kept,
 *	without effect
 * @hot_id_count: the model's tables, or 0: all are unspecified
 */
struct embeng_tpu_settings {
	size_t size;
	enum embeng_tpu_mode mode;
	enum embeng_tpu_form form;
	enum embeng_tpu_sharding sharding;
	int32_t hosts;
	const char *profile_directory;
	unsigned char spmd;
	unsigned char spmd_manual;
	int32_t spmd_cores_per_replica;
	const enum embeng_tpu_hot_ids *hot_ids;
	size_t hot_id_count;
};

/**
 * embeng_tpu_export() - a model as a TPUEmbeddingConfiguration
 * @settings: NULL: as zeroed
 * @bytes: out, malloc'd, the caller frees it
 * @length: out
 *
 * The same model and settings give the same bytes: fields in the order of their numbers,
 * defaults left out. num_tensor_cores is the replicas, input_shape the output shape, a
 * dynamic rate's tag the place of its name (embeng_model_rate_name()), and so a
 * step_counter's; a table has at least
 * as many rows as there are hosts. EMBENG_TPU_COUNTS gives batch_size_per_tensor_core the
 * greatest common divisor of all features' positions, num_features the multiples of it.
 *
 * The protobuf has no place for combiners, initializers, starts of slots, policies, names of
 * rates, frozen tables, sequence lengths, hints and the step depth.
 *
 * Return: 0, -EINVAL (settings; a feature without a whole shape, see embeng_model_build(); a
 * table without optimizer where others have one), -ERANGE (what 32 bits do not count),
 * -ENOTSUP naming the optimizer that the protobuf does not have (laprop, adam with bias
 * correction), -ENOMEM.
 */
EMBENG_API int embeng_tpu_export(const struct embeng_model *model,
				 const struct embeng_tpu_settings *settings, void **bytes,
				 size_t *length);

/**
 * struct embeng_tpu_hooks - functions that set the parts of a model that the protobuf lacks
 * @size: sizeof(struct embeng_tpu_hooks)
 * @arg: the first argument of both
 * @table: called before a table is added: may set what the protobuf does not tell, as
 *	combiner, initializer, frozen, and optimizer.rate_name and optimizer.step_counter
 *	("rate_" and the tag otherwise). NULL: nothing to set. A negative errno ends the import, with that
 *	errno
 * @feature: likewise before a feature is added
 */
struct embeng_tpu_hooks {
	size_t size;
	void *arg;
	int (*table)(void *arg, size_t index, struct embeng_table_config *config);
	int (*feature)(void *arg, size_t index, struct embeng_feature_config *config);
};

/**
 * struct embeng_tpu_unknown - a field that this library does not know
 * @size: sizeof(struct embeng_tpu_unknown)
 * @message: the path of the message that holds it, "" the configuration itself
 * @number: number of the field
 * @wire_type: 0 varint, 1 64 bits, 2 bytes, 5 32 bits
 * @offset: offset of its value in the bytes
 * @length: bytes of its value
 */
struct embeng_tpu_unknown {
	size_t size;
	const char *message;
	uint32_t number;
	uint32_t wire_type;
	uint64_t offset, length;
};

struct embeng_tpu;

/**
 * embeng_tpu_import() - read a TPUEmbeddingConfiguration
 * @bytes: [length], not kept
 * @hooks: NULL: none
 * @out: the result, to be freed with embeng_tpu_free()
 *
 * Takes all three of &enum embeng_tpu_form; counts alone give each table that many features,
 * named feature_0 and on in table order, of shape [batch_size_per_tensor_core]; where
 * descriptors and counts are both there, they must agree. Unnamed tables and features are
 * named as embeng_model_add_table() does. Unset num_hosts and num_tensor_cores are 1.
 *
 * simulated_quantization, when it is enabled, is the table's
 * &struct embeng_table_config.quantization. Tags of rates and of step_counter count from 0
 * without a gap.
 *
 * Places of fields that this library does not know are kept
 * (embeng_tpu_get_unknown()); they have no effect. Stricter than a parser of protobufs has to
 * be: a field given twice, an enumerator that there is not, a number that does not fit its
 * type, text that is no UTF-8 or holds a zero byte is refused, and so are more than 16 MiB,
 * or more than 4096 tables, features or unknown fields.
 *
 * The sentence of a failure starts with the path of the field. Return: 0, -EBADMSG (bytes
 * that are no such message), -EINVAL, -ERANGE, -EEXIST, -ENOENT (table_id), -ENOTSUP naming
 * an optimizer or feature that this library does not have, -ENOMEM.
 */
EMBENG_API int embeng_tpu_import(const void *bytes, size_t length,
				 const struct embeng_tpu_hooks *hooks, struct embeng_tpu **out);

/** embeng_tpu_free() - NULL is fine; what it told goes with it */
EMBENG_API void embeng_tpu_free(struct embeng_tpu *tpu);

/** embeng_tpu_model() - the model that was read; NULL for NULL. It goes with @tpu */
EMBENG_API const struct embeng_model *embeng_tpu_model(const struct embeng_tpu *tpu);

/**
 * embeng_tpu_get_settings() - the settings that were read, as embeng_tpu_export() takes them
 * @settings: its size set by the caller; text and array are @tpu's
 *
 * Return: 0, -EINVAL.
 */
EMBENG_API int embeng_tpu_get_settings(const struct embeng_tpu *tpu,
				       struct embeng_tpu_settings *settings);

/** embeng_tpu_unknown_count() - how many unknown fields there are; 0 for NULL */
EMBENG_API size_t embeng_tpu_unknown_count(const struct embeng_tpu *tpu);

/**
 * embeng_tpu_get_unknown() - an unknown field, in the order of the bytes
 * @unknown: its size set by the caller; its text is @tpu's
 *
 * Return: 0, -EINVAL, -ENOENT.
 */
EMBENG_API int embeng_tpu_get_unknown(const struct embeng_tpu *tpu, size_t index,
				      struct embeng_tpu_unknown *unknown);

/**
 * embeng_tpu_export_optimizer() - an optimizer as OptimizationParameters
 * @optimizer: as embeng_model_add_table() takes it
 * @tag: tag of its rate, when that is dynamic
 * @bytes: out, malloc'd, the caller frees it
 * @length: out
 *
 * Return: 0, -EINVAL, -ERANGE, -ENOTSUP, -ENOMEM, as embeng_tpu_export(); -ENOTSUP for a
 * step_counter, too, whose tag is a configuration's.
 */
EMBENG_API int embeng_tpu_export_optimizer(const struct embeng_optimizer *optimizer, int32_t tag,
					   void **bytes, size_t *length);

/**
 * embeng_tpu_import_optimizer() - read OptimizationParameters
 * @bytes: [length], not kept
 * @optimizer: out; what the protobuf does not hold is as its kind's function sets it
 * @tag: out, of a dynamic rate, -1 of a constant one. The caller sets rate_name
 *
 * Unknown fields are passed over; simulated_quantization is a table's and a step_counter's tag a
 * configuration's, so that they are refused (-ENOTSUP). Return: 0, -EBADMSG, -EINVAL, -ERANGE,
 * -ENOTSUP, -ENOMEM, as embeng_tpu_import().
 */
EMBENG_API int embeng_tpu_import_optimizer(const void *bytes, size_t length,
					   struct embeng_optimizer *optimizer, int32_t *tag);

/**
 * embeng_tpu_export_layouts() - layouts of tables as SparseCoreTableLayouts
 * @tables: [count], as of &struct embeng_stacking
 * @bytes: out, malloc'd, the caller frees it
 * @length: out
 *
 * The same layouts give the same bytes: tables in the order given, fields in the order of their
 * numbers, zeros left out.
 *
 * Return: 0, -EINVAL (a layout that no table has, a name that is not UTF-8, tables of one stack
 * that contradict each other or overlap), -EEXIST (a table twice), -ENOMEM.
 */
EMBENG_API int embeng_tpu_export_layouts(const struct embeng_table_layout *tables, size_t count,
					 void **bytes, size_t *length);

/**
 * struct embeng_layouts - contents of SparseCoreTableLayouts
 * @tables: [table_count], in the order of the bytes
 * @table_count: how many
 * @unknowns: [unknown_count] fields that this library does not know; they have no effect
 * @unknown_count: how many
 *
 * Freed by embeng_layouts_free(), names with it.
 */
struct embeng_layouts {
	struct embeng_table_layout *tables;
	size_t table_count;
	struct embeng_tpu_unknown *unknowns;
	size_t unknown_count;
};

/**
 * embeng_tpu_import_layouts() - read SparseCoreTableLayouts
 * @bytes: [length], not kept
 * @out: to be freed with embeng_layouts_free()
 *
 * It is as strict as embeng_tpu_import(). The results are layouts for embeng_table_shard() and
 * embeng_table_unshard().
 *
 * The sentence of a failure starts with the path of the field. Return: 0, -EBADMSG (bytes that
 * are no such message), -EINVAL and -EEXIST as embeng_tpu_export_layouts(), -ERANGE, -ENOMEM.
 */
EMBENG_API int embeng_tpu_import_layouts(const void *bytes, size_t length,
					 struct embeng_layouts **out);

/** embeng_layouts_free() - NULL is fine */
EMBENG_API void embeng_layouts_free(struct embeng_layouts *layouts);

#ifdef __cplusplus
}
#endif

#endif
