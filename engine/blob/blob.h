/* SPDX-License-Identifier: MIT */
/* A model blob, checked whole and parsed into a private description. */
#ifndef EMBENG_ENGINE_BLOB_H
#define EMBENG_ENGINE_BLOB_H

#include "../device/device.h"

/**
 * struct blob - a model
 * @hash: embeng_blob_header.hash
 * @engine: options; @engine.step_depth is resolved
 * @tables: [engine.table_count]
 * @kernels: [engine.table_count], enum kernel_optimizer_kind of each table
 * @quantizations: [engine.table_count], num_buckets 0: the table has none
 * @shards: [engine.table_count], row_step 0: the table is no part of a larger one
 * @features: [engine.feature_count]; limits of 0 are resolved
 * @limits: [engine.rate_count], whether the RATE is a limit of a clip, which may be infinite
 */
struct blob {
	u64 hash;
	struct embeng_record_engine engine;
	struct embeng_record_table *tables;
	u32 *kernels;
	struct embeng_record_quantization *quantizations;
	struct embeng_record_shard *shards;
	struct embeng_record_feature *features;
	bool *limits;
};

/**
 * blob_parse() - check a blob and take it apart
 * @data: private copy of the blob
 * @length: its bytes
 * @caps: the limits that hold
 * @blob: out; blob_free() it, after a failure too
 * @fault: out; element is the byte offset of what is wrong
 * @before: the model that the blob must begin with, see "Adding tables" in the uapi
 *
 * Return: 0 or a status.
 */
u16 blob_parse(const void *data, u64 length, const struct embeng_caps *caps, struct blob *blob,
	       struct fault *fault);
u16 blob_parse_more(const void *data, u64 length, const struct embeng_caps *caps,
		    const struct blob *before, struct blob *blob, struct fault *fault);
void blob_free(struct blob *blob);

static inline u32 blob_largest_dim(const struct blob *blob)
{
	u32 largest = 0;

	for (u32 t = 0; t < blob->engine.table_count; t++)
		largest = blob->tables[t].dim > largest ? blob->tables[t].dim : largest;
	return largest;
}

/* The bytes that a parsed blob takes beside itself. */
static inline u64 blob_bytes(const struct blob *blob)
{
	return ((u64)blob->engine.table_count + 1) *
		       (sizeof(*blob->tables) + sizeof(*blob->kernels) +
			sizeof(*blob->quantizations) + sizeof(*blob->shards)) +
	       ((u64)blob->engine.feature_count + 1) * sizeof(*blob->features) +
	       ((u64)blob->engine.rate_count + 1) * sizeof(*blob->limits);
}

/**
 * table_at_step() - the record of a table with the values of a step
 * @table: as the blob has it
 * @rates: [engine.rate_count] f32 bits
 * @out: each dynamic number has its value, and no flag that says that it is dynamic, but for
 *	@step_rate, which stays an index
 */
void table_at_step(const struct embeng_record_table *table, const u32 *rates,
		   struct embeng_record_table *out);

/**
 * blob_check_rates() - check the values that an UPDATE gives
 * @blob: the loaded model
 * @rates: [engine.rate_count] f32 bits, which nobody else changes
 * @fault: out; element is the index of the RATE, limit the bound that its number has
 *
 * Return: 0 or EMBENG_STATUS_NUMBER.
 */
u16 blob_check_rates(const struct blob *blob, const u32 *rates, struct fault *fault);

/* Whether any feature reads the table. */
static inline bool blob_has_feature(const struct blob *blob, u32 table)
{
	for (u32 f = 0; f < blob->engine.feature_count; f++) {
		if (blob->features[f].table == table)
			return true;
	}
	return false;
}

/* FNV-1a 64; @hash of what came before, FNV1A_START at first. */
#define FNV1A_START 0xcbf29ce484222325ull
u64 fnv1a(u64 hash, const void *data, u64 length);

/**
 * optimizer_kernel() - find the kernel that computes an optimizer of the uapi
 *
 * Return: enum kernel_optimizer_kind, or U32_MAX when there is none.
 */
u32 optimizer_kernel(u32 optimizer);

/**
 * optimizer_number_ok() - whether a hyperparameter is within its limits
 * @kernel: enum kernel_optimizer_kind
 * @index: its number; beyond those that the optimizer has @bits must be 0
 * @bits: f32 bits
 *
 * Return: true when it is.
 */
bool optimizer_number_ok(u32 kernel, u32 index, u32 bits);

#endif
