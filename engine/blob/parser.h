/* SPDX-License-Identifier: MIT */
/* Between the files that check a blob. */
#ifndef EMBENG_ENGINE_BLOB_PARSER_H
#define EMBENG_ENGINE_BLOB_PARSER_H

#include "blob.h"

#define AT(offset, record, member) ((offset) + offsetof(struct record, member))

struct parser {
	const u8 *data;
	u64 length;
	const struct embeng_caps *caps;
	const struct blob *before; /* the model that it must begin with, or NULL */
	struct blob *blob;
	struct fault *fault;
	u64 hash;
	u32 tables, features, rates;
	u32 quantized; /* tables before this one have their QUANTIZATION, or none */
	u32 sharded;   /* the same of SHARD */
	bool begun;    /* the ENGINE record was there */
};

static inline u16 broken(struct parser *p, u16 status, u64 offset, u64 value, u64 limit)
{
	return fault_set(p->fault, status, EMBENG_FIELD_BLOB, EMBENG_NO_INDEX, offset, value,
			 limit);
}

/* A value beyond what this device can do, at its place in the blob. */
static inline u16 value_above(struct parser *p, u64 offset, u64 value, u64 limit)
{
	return value > limit ? broken(p, EMBENG_STATUS_BLOB_VALUE, offset, value, limit) : 0;
}

static inline u16 value_within(struct parser *p, u64 offset, u64 value, u64 low, u64 high)
{
	if (value < low)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, offset, value, low);
	return value_above(p, offset, value, high);
}

/**
 * blob_check_table() - the values of a TABLE record
 * @at: where it begins
 * @t: copy of it
 * @kind: out, enum kernel_optimizer_kind, U32_MAX without optimizer
 *
 * Return: 0 or a status, with the fault set.
 */
u16 blob_check_table(struct parser *p, u64 at, const struct embeng_record_table *t, u32 *kind);

/**
 * blob_check_numbers() - the numbers of a TABLE record none of which is dynamic
 * @at: where it begins
 * @t: copy of it
 * @kind: enum kernel_optimizer_kind, U32_MAX without optimizer
 *
 * Return: 0 or a status, with the fault set.
 */
u16 blob_check_numbers(struct parser *p, u64 at, const struct embeng_record_table *t, u32 kind);

/*
 * extension.c: whether a blob begins with the one before it, if there is one. @at: where the record
 * begins; a table or feature is the last that was taken.
 */
u16 blob_extends_engine(struct parser *p, u64 at);
u16 blob_extends_table(struct parser *p, u64 at);
u16 blob_extends_feature(struct parser *p, u64 at);
u16 blob_extends_quantizations(struct parser *p);
u16 blob_extends_shards(struct parser *p);

/* The flags of all numbers that may be dynamic, but for the rate and the step. */
#define TABLE_NUMBERS_DYNAMIC \
	(EMBENG_TABLE_WEIGHT_DECAY_DYNAMIC | EMBENG_TABLE_CLIP_GRADIENT_MIN_DYNAMIC | \
	 EMBENG_TABLE_CLIP_GRADIENT_MAX_DYNAMIC | EMBENG_TABLE_CLIP_WEIGHT_MIN_DYNAMIC | \
	 EMBENG_TABLE_CLIP_WEIGHT_MAX_DYNAMIC | EMBENG_TABLE_MAX_NORM_DYNAMIC | \
	 ~0u << 16) /* that is HYPERPARAMETER_DYNAMIC of each */

/* dynamic.c: the RATE that stands for the number at an offset of the record, U32_MAX: none does. */
u32 blob_rate_at(const struct embeng_record_table *t, u64 place);

/* The flags of a table that say which numbers may be dynamic, by its kernel. */
u32 blob_dynamic_flags(u32 kind);

/* Indices of the RATEs that stand for numbers of a table, but for its rate and its step. */
u16 blob_check_dynamic(struct parser *p, u64 at, const struct embeng_record_table *t);

/* The table with something that each dynamic number can be; @kind: its kernel. */
struct embeng_record_table blob_fill_dynamic(const struct embeng_record_table *t, u32 kind);

/* The values of a QUANTIZATION or SHARD record, but for its table; otherwise likewise. */
u16 blob_check_quantization(struct parser *p, u64 at, const struct embeng_record_quantization *q);
u16 blob_check_shard(struct parser *p, u64 at, const struct embeng_record_shard *s);

#endif
