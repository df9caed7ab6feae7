/* SPDX-License-Identifier: MIT */
/*
 * Table stacking: which tables of a model share memory on SparseCores, and where each row
 * stands. Included by embeng.h, whose rules hold.
 *
 * DOC: What is stacked how
 *
 * A grid of S SparseCores (devices of n cores each) holds a table by rows: row r is on core
 * (r + rotation) % S. A table is padded to a multiple of 8 columns and of 8 rows for each core.
 * Tables of one padded width and one optimizer form stacks: on every core the shards of a
 * stack's tables stand one behind the other. Row r of a table is row r / S + row_offset of its
 * core's shard; row_offset is the sum of padded rows / S of the tables before it, the rotation
 * of the i-th table (i * rotation) % S.
 *
 * A table goes into the first stack that it fits, in this order of tables:
 *
 * TF: by name. A table has floor(samples / 4) samples, of all its features together; it fits
 * while 4 * width * sum(samples) < activation_limit_bytes, 4 * width * sum(padded rows) /
 * devices < shard_limit_bytes and sum(padded rows) < row_limit (GetTableStacks() of
 * sparse_core_ops_utils.cc, SparseCoreLayoutStacker of sparse_core_layout.cc). Combiners may
 * differ, for gains carry them.
 *
 * JAX: as features first use them, then those that none uses. A table has the sum of
 * floor(samples / n) over its features; it fits while 4 * width * sum(samples) <=
 * activation_limit_bytes. Combiners are equal (auto_stack_tables() of table_stacking.py).
 *
 * Stacks come in the order of their first table, and are named after their tables with "_"
 * between; JAX cuts a name beyond 50 characters and puts "..." and 12 hexadecimal digits of the
 * whole name's SHA-256 behind.
 */
#ifndef EMBENG_STACKING_H
#define EMBENG_STACKING_H

#include "model.h"
#include "partition.h"

#ifdef __cplusplus
extern "C" {
#endif

struct embeng_profile;

/**
 * struct embeng_stack_group - tables to be stacked by hand
 * @name: name of the stack; NULL: a name as for other stacks
 * @tables: [table_count] indices, in the order in which they stand
 * @table_count: from 1
 */
struct embeng_stack_group {
	const char *name;
	const int *tables;
	size_t table_count;
};

/**
 * struct embeng_stacking_options - how to stack
 * @size: sizeof(struct embeng_stacking_options)
 * @flavour: rules, see above
 * @sparse_cores: cores of the whole grid, 1 to 65536; JAX: a power of two
 * @cores_per_device: divides @sparse_cores, at most 64; 0: 4
 * @activation_limit_bytes: most bytes of one core's activations; 0: 2097152. UINT64_MAX is no
 *	limit, here and below
 * @shard_limit_bytes: most bytes of one device's share of a stack; 0: 2147483648 in TF, no limit in
 *	JAX
 * @row_limit: most rows of a stack; 0: 2147483647 in TF, no limit in JAX
 * @table_limit: most tables of a stack; 0: no limit
 * @no_stacking: nonzero: each table is a stack of its own
 * @rotation_given: nonzero: @rotation counts, else it is @cores_per_device
 * @rotation: rotation of the second table of a stack against the first, and so on
 * @long_names: nonzero: JAX does not cut names either
 * @groups: [group_count], stacks by hand instead, which come first; what is in none is a stack
 *	of its own. No limit holds; a stack is as wide as its widest table
 * @group_count: 0: stack by the rules
 * @no_excess_padding: nonzero: tables of a group that differ in padded width are an error
 * @profile: profile of the model; rotations are those of embeng_profile_rotations(), so that
 *	the rows that are asked for most are spread over the cores. Not with @rotation_given.
 *	NULL: none
 */
struct embeng_stacking_options {
	size_t size;
	enum embeng_partition_flavour flavour;
	uint32_t sparse_cores, cores_per_device;
	uint64_t activation_limit_bytes, shard_limit_bytes, row_limit, table_limit;
	int no_stacking;
	int rotation_given;
	uint32_t rotation;
	int long_names;
	const struct embeng_stack_group *groups;
	size_t group_count;
	int no_excess_padding;
	const struct embeng_profile *profile;
};

/**
 * struct embeng_stack - tables that share memory
 * @name: name of the stack
 * @width: columns, padded
 * @rows_per_core: rows of each core's shard, those of all its tables
 * @tables: [table_count] indices, in the order in which they stand
 * @table_count: from 1
 * @features: [feature_count] indices of the features of these tables, in feature order
 * @feature_count: 0 when none uses them
 * @samples: samples of these features on one device
 */
struct embeng_stack {
	const char *name;
	int64_t width, rows_per_core;
	int *tables;
	size_t table_count;
	int *features;
	size_t feature_count;
	int64_t samples;
};

/**
 * struct embeng_table_layout - where the rows of a table stand
 * @size: sizeof(struct embeng_table_layout)
 * @table: name
 * @stack: name
 * @sparse_cores: cores of the grid
 * @partitions: devices, each of which has sparse_cores / partitions of the cores
 * @rows_per_core: rows of each core's shard, those of all tables of the stack
 * @rows: rows of the table
 * @dim: columns of the table
 * @padded_rows: a multiple of @sparse_cores
 * @padded_dim: columns of the stack
 * @row_offset: offset of the table's first row within each shard
 * @rotation: row 0 is on this core
 * @samples_per_core: samples of all its features on one core
 * @feature_count: number of features that use it
 *
 * The members are the fields of the SparseCoreTableLayout message.
 */
struct embeng_table_layout {
	size_t size;
	const char *table, *stack;
	int32_t sparse_cores, partitions;
	int64_t rows_per_core;
	int64_t rows, dim, padded_rows, padded_dim;
	int64_t row_offset, rotation;
	int64_t samples_per_core, feature_count;
};

/**
 * struct embeng_sample_place - where the samples of a feature stand
 * @stack: index
 * @offset: samples of the stack's features before it, of one device. On a core it is offset /
 *	cores_per_device
 * @samples: its own, the product of its output shape
 */
struct embeng_sample_place {
	size_t stack;
	int64_t offset, samples;
};

/**
 * struct embeng_stacking - the stacks of a model
 * @flavour: flavour whose rules made it
 * @sparse_cores: cores of the grid
 * @cores_per_device: cores of each device
 * @model_hash: hash of the model
 * @stacks: [stack_count]
 * @stack_count: how many
 * @tables: [table_count], in table order
 * @table_count: the model's
 * @features: [feature_count], in feature order
 * @feature_count: the model's
 *
 * Does not need the model any more. Freed by embeng_stacking_free().
 */
struct embeng_stacking {
	enum embeng_partition_flavour flavour;
	uint32_t sparse_cores, cores_per_device;
	uint64_t model_hash;
	struct embeng_stack *stacks;
	size_t stack_count;
	struct embeng_table_layout *tables;
	size_t table_count;
	struct embeng_sample_place *features;
	size_t feature_count;
};

/**
 * embeng_stacking_make() - stack the tables of a model
 * @model: model whose features all have a whole output shape, see embeng_model_build(): that of one
 *	device's samples
 * @options: how
 * @out: to be freed with embeng_stacking_free()
 *
 * The same model and options give the same stacks.
 *
 * Return: 0; -EINVAL (options, cores that do not divide, a feature without a whole shape, tables
 * of a group that differ), -ERANGE (cores; more rows or samples than 64 bits count), -ENOENT (a
 * group's table), -EEXIST (a table that is in a group twice or in two groups, two stacks of one
 * name), -ENOMEM.
 */
EMBENG_API int embeng_stacking_make(const struct embeng_model *model,
				    const struct embeng_stacking_options *options,
				    struct embeng_stacking **out);

/** embeng_stacking_free() - NULL is fine */
EMBENG_API void embeng_stacking_free(struct embeng_stacking *stacking);

/**
 * struct embeng_row_place - where one row stands
 * @core: core of the grid
 * @row: row of the core's shard
 * @partition: device
 * @partition_row: row in the shards of the device's cores, one behind the other
 */
struct embeng_row_place {
	int64_t core, row, partition, partition_row;
};

/**
 * embeng_layout_place() - where a row of a table stands
 * @layout: layout from a stacking, or imported
 * @row: row of the table
 * @place: out
 *
 * core = (row + rotation) % sparse_cores; row = row / sparse_cores + row_offset; partition =
 * core / cores of a partition; partition_row = rows_per_core * (core % cores of a partition) +
 * row of the shard. Source: sparse_core_layout.proto.
 *
 * Return: 0, -EINVAL (a layout that no table has), -ERANGE (no such row).
 */
EMBENG_API int embeng_layout_place(const struct embeng_table_layout *layout, int64_t row,
				   struct embeng_row_place *place);

/**
 * struct embeng_shards - memory of some cores' shards of a stack
 * @size: sizeof(struct embeng_shards)
 * @data: rows of @first_core, then those of the other cores
 * @first_core: first core, by its number in the grid
 * @core_count: from 1
 * @core_stride: floats from one core's shard to the next; 0: the rows of a shard
 * @row_stride: floats from one row to the next; 0: the columns of the stack
 *
 * With both strides 0 and the cores of a partition it is the variable of that partition as
 * checkpoints of the family have it; with all cores, [sparse_cores, rows_per_core, width].
 */
struct embeng_shards {
	size_t size;
	float *data;
	int64_t first_core, core_count;
	int64_t core_stride, row_stride;
};

/**
 * embeng_table_shard() - put a table, or a slot of it, into its stack
 * @layout: layout of the table
 * @rows: [rows][dim] in the order of ids
 * @row_stride: floats from one row to the next; 0: dim
 * @padding: value of padded rows and columns; the family has 0 (TF) and NaN (JAX)
 * @shards: memory of the cores that are wanted; rows of other tables stay
 *
 * Return: 0, -EINVAL, -ERANGE (cores that the grid does not have, more floats than memory has).
 */
EMBENG_API int embeng_table_shard(const struct embeng_table_layout *layout, const float *rows,
				  int64_t row_stride, float padding,
				  const struct embeng_shards *shards);

/**
 * embeng_table_unshard() - take a table, or a slot of it, out of its stack
 * @layout: layout of the table
 * @shards: memory of the cores that are there
 * @rows: [rows][dim]; rows of other cores stay
 * @row_stride: floats from one row to the next; 0: dim
 *
 * Return: as embeng_table_shard().
 */
EMBENG_API int embeng_table_unshard(const struct embeng_table_layout *layout,
				    const struct embeng_shards *shards, float *rows,
				    int64_t row_stride);

#ifdef __cplusplus
}
#endif

#endif
