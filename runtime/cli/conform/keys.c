// SPDX-License-Identifier: MIT
/*
 * Every key of the vector format with its type, except those of optimizers (optimizers.c).
 * The check in schema.c goes by these tables.
 */
#include <stddef.h>

#include "schema.h"

static const struct key engine_keys[] = {
	{"replicas", TYPE_INTEGER, OPTIONAL, NULL}, {"cores", TYPE_INTEGER, OPTIONAL, NULL},
	{"hosts", TYPE_INTEGER, OPTIONAL, NULL},    {"sharding", TYPE_TEXT, OPTIONAL, NULL},
	{"pipelining", TYPE_BOOL, OPTIONAL, NULL},  {"fixed_shapes", TYPE_BOOL, OPTIONAL, NULL},
	{"non_finite", TYPE_TEXT, OPTIONAL, NULL},  {0},
};

static const struct key quantization_keys[] = {
	{"num_buckets", TYPE_INTEGER, REQUIRED, NULL},
	{"lower", TYPE_NUMBER, REQUIRED, NULL},
	{"upper", TYPE_NUMBER, REQUIRED, NULL},
	{0},
};

static const struct key part_keys[] = {
	{"rows", TYPE_INTEGER, REQUIRED, NULL},		{"first_row", TYPE_INTEGER, OPTIONAL, NULL},
	{"row_step", TYPE_INTEGER, OPTIONAL, NULL},	{"dim", TYPE_INTEGER, OPTIONAL, NULL},
	{"first_column", TYPE_INTEGER, OPTIONAL, NULL}, {0},
};

static const struct key initializer_keys[] = {
	{"kind", TYPE_TEXT, REQUIRED, NULL},
	{"a", TYPE_NUMBER, OPTIONAL, NULL},
	{"b", TYPE_NUMBER, OPTIONAL, NULL},
	{"seed", TYPE_INTEGER, OPTIONAL, NULL},
	{0},
};

static const struct key table_keys[] = {
	{"name", TYPE_TEXT, REQUIRED, NULL},
	{"vocabulary_size", TYPE_INTEGER, REQUIRED, NULL},
	{"dim", TYPE_INTEGER, REQUIRED, NULL},
	{"combiner", TYPE_TEXT, OPTIONAL, NULL},
	{"optimizer", TYPE_OPTIMIZER, OPTIONAL, NULL},
	{"initial", TYPE_MATRIX, OPTIONAL, NULL},
	{"slots", TYPE_MAP_MATRIX, OPTIONAL, NULL},
	{"out_of_range", TYPE_TEXT, OPTIONAL, NULL},
	{"quantization", TYPE_OBJECT, OPTIONAL, quantization_keys},
	{"frozen", TYPE_BOOL, OPTIONAL, NULL},
	{"part", TYPE_OBJECT, OPTIONAL, part_keys},
	{"initializer", TYPE_OBJECT, OPTIONAL, initializer_keys},
	{0},
};

static const struct key feature_keys[] = {
	{"name", TYPE_TEXT, REQUIRED, NULL},
	{"table", TYPE_TEXT, REQUIRED, NULL},
	{"max_sequence_length", TYPE_INTEGER, OPTIONAL, NULL},
	{"output_shape", TYPE_INTEGERS, NULLABLE, NULL},
	{"validate_weights_and_indices", TYPE_BOOL, OPTIONAL, NULL},
	{0},
};

const struct key step_error_keys[] = {
	{"errno", TYPE_TEXT, OPTIONAL, NULL},
	{"contains", TYPE_TEXTS, OPTIONAL, NULL},
	{0},
};

/* @need: whether the keys that only a vector needs are required; a model file may lack them. */
#define VECTOR_KEYS(need) \
	{"schema", TYPE_TEXT, need, NULL}, {"name", TYPE_TEXT, need, NULL}, \
		{"about", TYPE_TEXT, OPTIONAL, NULL}, {"source", TYPE_TEXT, OPTIONAL, NULL}, \
		{"requires", TYPE_TEXTS, OPTIONAL, NULL}, \
		{"engine", TYPE_OBJECT, OPTIONAL, engine_keys}, \
		{"tables", TYPE_OBJECTS, REQUIRED, table_keys}, \
		{"features", TYPE_OBJECTS, REQUIRED, feature_keys}, \
		{"model_error", TYPE_ERROR, OPTIONAL, NULL}, {"steps", TYPE_STEP, need, NULL}, {0}

const struct key vector_keys[] = {VECTOR_KEYS(REQUIRED)};
const struct key model_keys[] = {VECTOR_KEYS(OPTIONAL)};

const struct key input_dense_keys[] = {
	{"dense", TYPE_INTEGERS, REQUIRED, NULL},
	{"shape", TYPE_INTEGERS, OPTIONAL, NULL},
	{"weights", TYPE_WEIGHTS, OPTIONAL, NULL},
	{0},
};

static const struct key coo_keys[] = {
	{"indices", TYPE_INTEGER_LISTS, REQUIRED, NULL},
	{"values", TYPE_INTEGERS, REQUIRED, NULL},
	{"shape", TYPE_INTEGERS, REQUIRED, NULL},
	{0},
};

const struct key input_sparse_keys[] = {
	{"sparse", TYPE_OBJECT, REQUIRED, coo_keys},
	{"weights", TYPE_WEIGHTS, OPTIONAL, NULL},
	{0},
};

const struct key ragged_rows_keys[] = {
	{"rows", TYPE_INTEGER_LISTS, REQUIRED, NULL},
	{0},
};

const struct key ragged_splits_keys[] = {
	{"values", TYPE_INTEGERS, REQUIRED, NULL},
	{"row_splits", TYPE_INTEGERS, REQUIRED, NULL},
	{0},
};

/* The object's keys show which of the two lists it follows. */
const struct key input_ragged_keys[] = {
	{"ragged", TYPE_OBJECT, REQUIRED, NULL},
	{"weights", TYPE_WEIGHTS, OPTIONAL, NULL},
	{0},
};

static const struct key enqueue_keys[] = {
	{"replica", TYPE_INTEGER, OPTIONAL, NULL},
	{"training", TYPE_BOOL, OPTIONAL, NULL},
	{"features", TYPE_INPUT, REQUIRED, NULL},
	{0},
};

static const struct key dequeue_keys[] = {
	{"replica", TYPE_INTEGER, OPTIONAL, NULL},
	{"expect", TYPE_MAP_NESTED, REQUIRED, NULL},
	{"atol", TYPE_NUMBER, OPTIONAL, NULL},
	{"rtol", TYPE_NUMBER, OPTIONAL, NULL},
	{0},
};

static const struct key apply_keys[] = {
	{"replica", TYPE_INTEGER, OPTIONAL, NULL},
	{"gradients", TYPE_MAP_GRADIENT, REQUIRED, NULL},
	{"learning_rates", TYPE_MAP_NUMBER, OPTIONAL, NULL},
	{"multiplier", TYPE_NUMBER, OPTIONAL, NULL},
	{"sums", TYPE_BOOL, OPTIONAL, NULL},
	{0},
};

static const struct key update_keys[] = {
	{"replica", TYPE_INTEGER, OPTIONAL, NULL},
	{"features", TYPE_INPUT, REQUIRED, NULL},
	{"gradients", TYPE_MAP_GRADIENT, REQUIRED, NULL},
	{"learning_rates", TYPE_MAP_NUMBER, OPTIONAL, NULL},
	{"multiplier", TYPE_NUMBER, OPTIONAL, NULL},
	{"sums", TYPE_BOOL, OPTIONAL, NULL},
	{0},
};

static const struct key expect_gradients_keys[] = {
	{"replica", TYPE_INTEGER, OPTIONAL, NULL},
	{"features", TYPE_INPUT, REQUIRED, NULL},
	{"gradients", TYPE_MAP_GRADIENT, REQUIRED, NULL},
	{"norm", TYPE_NUMBER, OPTIONAL, NULL},
	{"tables", TYPE_MAP_NUMBER, OPTIONAL, NULL},
	{"weights", TYPE_MAP_NESTED, OPTIONAL, NULL},
	{"atol", TYPE_NUMBER, OPTIONAL, NULL},
	{"rtol", TYPE_NUMBER, OPTIONAL, NULL},
	{0},
};

static const struct key add_tables_keys[] = {
	{"tables", TYPE_OBJECTS, OPTIONAL, table_keys},
	{"features", TYPE_OBJECTS, OPTIONAL, feature_keys},
	{0},
};

static const struct key discard_keys[] = {
	{"replica", TYPE_INTEGER, OPTIONAL, NULL},
	{0},
};

static const struct key expect_table_keys[] = {
	{"table", TYPE_TEXT, REQUIRED, NULL},
	{"slot", TYPE_TEXT, OPTIONAL, NULL},
	{"rows", TYPE_INTEGERS, OPTIONAL, NULL},
	{"values", TYPE_MATRIX, REQUIRED, NULL},
	{"atol", TYPE_NUMBER, OPTIONAL, NULL},
	{"rtol", TYPE_NUMBER, OPTIONAL, NULL},
	{0},
};

static const struct key lookup_keys[] = {
	{"features", TYPE_INPUT, REQUIRED, NULL},
	{"expect", TYPE_MAP_NESTED, REQUIRED, NULL},
	{"atol", TYPE_NUMBER, OPTIONAL, NULL},
	{"rtol", TYPE_NUMBER, OPTIONAL, NULL},
	{"config", TYPE_OBJECTS, OPTIONAL, feature_keys},
	{0},
};

static const struct key folder_keys[] = {
	{"dir", TYPE_TEXT, REQUIRED, NULL},
	{0},
};

static const struct key reopen_keys[] = {
	{"engine", TYPE_OBJECT, OPTIONAL, engine_keys},
	{"optimizer", TYPE_BOOL, OPTIONAL, NULL},
	{0},
};

static const struct key freeze_keys[] = {
	{"table", TYPE_TEXT, REQUIRED, NULL},
	{"frozen", TYPE_BOOL, REQUIRED, NULL},
	{0},
};

static const struct key fill_keys[] = {
	{"table", TYPE_TEXT, REQUIRED, NULL},
	{"slot", TYPE_TEXT, OPTIONAL, NULL},
	{"first", TYPE_INTEGER, OPTIONAL, NULL},
	{"count", TYPE_INTEGER, OPTIONAL, NULL},
	{"initializer", TYPE_OBJECT, REQUIRED, initializer_keys},
	{0},
};

static const struct key expect_stats_keys[] = {
	{"table", TYPE_TEXT, REQUIRED, NULL},
	{"ids", TYPE_INTEGER, OPTIONAL, NULL},
	{"unique_ids", TYPE_INTEGER, OPTIONAL, NULL},
	{"dropped_ids", TYPE_INTEGER, OPTIONAL, NULL},
	{"clamped_ids", TYPE_INTEGER, OPTIONAL, NULL},
	{"zeroed_ids", TYPE_INTEGER, OPTIONAL, NULL},
	{"nonfinite_gradient_rows", TYPE_INTEGER, OPTIONAL, NULL},
	{0},
};

static const struct key stack_keys[] = {
	{"name", TYPE_TEXT, OPTIONAL, NULL},
	{"width", TYPE_INTEGER, OPTIONAL, NULL},
	{"tables", TYPE_TEXTS, OPTIONAL, NULL},
	{"row_offsets", TYPE_INTEGERS, OPTIONAL, NULL},
	{"rotations", TYPE_INTEGERS, OPTIONAL, NULL},
	{"sample_offsets", TYPE_INTEGERS, OPTIONAL, NULL},
	{0},
};

static const struct key stacking_keys[] = {
	{"flavour", TYPE_TEXT, REQUIRED, NULL},
	{"sparse_cores", TYPE_INTEGER, REQUIRED, NULL},
	{"cores_per_device", TYPE_INTEGER, OPTIONAL, NULL},
	{"activation_limit_bytes", TYPE_INTEGER, OPTIONAL, NULL},
	{"expect", TYPE_OBJECTS, REQUIRED, stack_keys},
	{0},
};

static const struct key padding_keys[] = {
	{"id", TYPE_INTEGER, OPTIONAL, NULL},
	{"gain", TYPE_NUMBER, OPTIONAL, NULL},
	{0},
};

static const struct key partition_expect_keys[] = {
	{"row_pointers", TYPE_INTEGER_LISTS, OPTIONAL, NULL},
	{"items", TYPE_ITEMS, OPTIONAL, NULL},
	{"dropped_ids", TYPE_INTEGER, OPTIONAL, NULL},
	{"max_ids", TYPE_INTEGERS, OPTIONAL, NULL},
	{"max_unique_ids", TYPE_INTEGERS, OPTIONAL, NULL},
	{"required_buffer", TYPE_INTEGERS, OPTIONAL, NULL},
	{"minibatches", TYPE_INTEGER, OPTIONAL, NULL},
	{"padding", TYPE_OBJECT, OPTIONAL, padding_keys},
	{0},
};

static const struct key partition_keys[] = {
	{"flavour", TYPE_TEXT, REQUIRED, NULL},
	{"sparse_cores", TYPE_INTEGER, REQUIRED, NULL},
	{"cores_per_device", TYPE_INTEGER, REQUIRED, NULL},
	{"device", TYPE_INTEGER, OPTIONAL, NULL},
	{"features", TYPE_INPUT, REQUIRED, NULL},
	{"max_ids_per_partition", TYPE_INTEGER, REQUIRED, NULL},
	{"max_unique_ids_per_partition", TYPE_INTEGER, REQUIRED, NULL},
	{"minibatching", TYPE_BOOL, OPTIONAL, NULL},
	{"bucket", TYPE_TEXT, OPTIONAL, NULL},
	{"allow_id_dropping", TYPE_BOOL, OPTIONAL, NULL},
	{"suggested_buffer_size", TYPE_INTEGER, NULLABLE, NULL},
	{"rotation", TYPE_INTEGER, NULLABLE, NULL},
	{"expect", TYPE_OBJECT, REQUIRED, partition_expect_keys},
	{0},
};

static const struct key spread_expect_keys[] = {
	{"rows", TYPE_MAP_NESTED, OPTIONAL, NULL},
	{"activations", TYPE_MAP_NESTED, OPTIONAL, NULL},
	{"sums", TYPE_MAP_NESTED, OPTIONAL, NULL},
	{0},
};

static const struct key spread_keys[] = {
	{"hosts", TYPE_INTEGER, OPTIONAL, NULL},
	{"sharding", TYPE_TEXT, OPTIONAL, NULL},
	{"features", TYPE_INPUT, REQUIRED, NULL},
	{"gradients", TYPE_MAP_NESTED, OPTIONAL, NULL},
	{"expect", TYPE_OBJECT, REQUIRED, spread_expect_keys},
	{"atol", TYPE_NUMBER, OPTIONAL, NULL},
	{"rtol", TYPE_NUMBER, OPTIONAL, NULL},
	{0},
};

const struct key step_verbs[] = {
	{"enqueue", TYPE_OBJECT, OPTIONAL, enqueue_keys},
	{"dequeue", TYPE_OBJECT, OPTIONAL, dequeue_keys},
	{"apply_gradients", TYPE_OBJECT, OPTIONAL, apply_keys},
	{"update", TYPE_OBJECT, OPTIONAL, update_keys},
	{"discard", TYPE_OBJECT, OPTIONAL, discard_keys},
	{"expect_gradients", TYPE_OBJECT, OPTIONAL, expect_gradients_keys},
	{"expect_table", TYPE_OBJECT, OPTIONAL, expect_table_keys},
	{"lookup", TYPE_OBJECT, OPTIONAL, lookup_keys},
	{"save", TYPE_OBJECT, OPTIONAL, folder_keys},
	{"restore", TYPE_OBJECT, OPTIONAL, folder_keys},
	{"reopen", TYPE_OBJECT, OPTIONAL, reopen_keys},
	{"add_tables", TYPE_OBJECT, OPTIONAL, add_tables_keys},
	{"expect_config", TYPE_CONFIG, OPTIONAL, NULL},
	{"expect_stats", TYPE_OBJECT, OPTIONAL, expect_stats_keys},
	{"freeze", TYPE_OBJECT, OPTIONAL, freeze_keys},
	{"fill", TYPE_OBJECT, OPTIONAL, fill_keys},
	{"stacking", TYPE_OBJECT, OPTIONAL, stacking_keys},
	{"partition", TYPE_OBJECT, OPTIONAL, partition_keys},
	{"spread", TYPE_OBJECT, OPTIONAL, spread_keys},
	{0},
};
