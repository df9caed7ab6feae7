/* SPDX-License-Identifier: MIT */
/*
 * Checks of the blob of a MODEL_LOAD with EMBENG_CMD_EXTENDS against the loaded model: the tables,
 * features, quantizations and shards of that come first, with the same bytes, and no count shrinks. The
 * checks of blob.c hold for the new blob as a whole; these come behind them.
 *
 * A blob that extends none passes all of them. The loaded blob stays as it is meanwhile, since the
 * command is a user of its model. No lock is needed.
 */
#include "parser.h"

/* The place of the first byte in which two records differ, U64_MAX: they are equal. */
static u64 find_difference(const void *a, const void *b, u64 length)
{
	const u8 *x = a, *y = b;

	for (u64 i = 0; i < length; i++) {
		if (x[i] != y[i])
			return i;
	}
	return U64_MAX;
}

static u16 compare_record(struct parser *p, u64 at, const void *record, const void *before,
			  u64 length)
{
	u64 place = find_difference(record, before, length);

	if (place == U64_MAX)
		return 0;
	return broken(p, EMBENG_STATUS_BLOB_VALUE, at + place, ((const u8 *)record)[place],
		      ((const u8 *)before)[place]);
}

u16 blob_extends_engine(struct parser *p, u64 at)
{
	const struct embeng_record_engine *e = &p->blob->engine, *before;
	u16 status;

	if (!p->before)
		return 0;
	before = &p->before->engine;
	status = value_within(p, AT(at, embeng_record_engine, replicas), e->replicas,
			      before->replicas, before->replicas);
	if (!status)
		status = value_within(p, AT(at, embeng_record_engine, flags), e->flags,
				      before->flags, before->flags);
	if (!status)
		status = value_within(p, AT(at, embeng_record_engine, table_count), e->table_count,
				      before->table_count, U32_MAX);
	if (!status)
		status = value_within(p, AT(at, embeng_record_engine, feature_count),
				      e->feature_count, before->feature_count, U32_MAX);
	if (!status)
		status = value_within(p, AT(at, embeng_record_engine, rate_count), e->rate_count,
				      before->rate_count, U32_MAX);
	if (!status)
		status = value_within(p, AT(at, embeng_record_engine, step_depth), e->step_depth,
				      before->step_depth, before->step_depth);
	return status;
}

u16 blob_extends_table(struct parser *p, u64 at)
{
	u32 last = p->tables - 1;

	if (!p->before || last >= p->before->engine.table_count)
		return 0;
	return compare_record(p, at, &p->blob->tables[last], &p->before->tables[last],
			      sizeof(p->blob->tables[last]));
}

u16 blob_extends_feature(struct parser *p, u64 at)
{
	u32 last = p->features - 1;

	if (!p->before || last >= p->before->engine.feature_count)
		return 0;
	return compare_record(p, at, &p->blob->features[last], &p->before->features[last],
			      sizeof(p->blob->features[last]));
}

/* A table that has none has zeros. The fault is at the end of the blob, where one may be missing. */
u16 blob_extends_quantizations(struct parser *p)
{
	for (u32 t = 0; p->before && t < p->before->engine.table_count; t++) {
		const struct embeng_record_quantization *q = &p->blob->quantizations[t];
		const struct embeng_record_quantization *before = &p->before->quantizations[t];

		if (find_difference(q, before, sizeof(*q)) != U64_MAX)
			return broken(p, EMBENG_STATUS_BLOB_VALUE, p->length, q->num_buckets,
				      before->num_buckets);
	}
	return 0;
}

/* The same of shards. */
u16 blob_extends_shards(struct parser *p)
{
	for (u32 t = 0; p->before && t < p->before->engine.table_count; t++) {
		const struct embeng_record_shard *s = &p->blob->shards[t];
		const struct embeng_record_shard *before = &p->before->shards[t];

		if (find_difference(s, before, sizeof(*s)) != U64_MAX)
			return broken(p, EMBENG_STATUS_BLOB_VALUE, p->length, s->row_step,
				      before->row_step);
	}
	return 0;
}
