/* SPDX-License-Identifier: MIT */
/*
 * The parser of a model's configuration blob: the header and its checksum, the framing, order and
 * counts of the records, and the values in ENGINE, FEATURE and RATE records. The long checks of
 * TABLE, QUANTIZATION and SHARD records are in table.c, those of a blob that extends another one in
 * extension.c.
 *
 * A parser lives for one call of blob_parse(). The arrays of the struct blob that it fills belong
 * to the caller, who frees them with blob_free(), after an error too. The input is read more than
 * once, so it must be memory that nobody else can change. No lock is needed.
 */
#include "parser.h"
#include "../hash/crc32c.h"

#define BLOB_ALIGN 8u

u64 fnv1a(u64 hash, const void *data, u64 length)
{
	const u8 *p = data;

	for (u64 i = 0; i < length; i++)
		hash = (hash ^ p[i]) * 0x100000001b3ull;
	return hash;
}

static u16 take_table_record(struct parser *p, u64 at, u64 length)
{
	struct embeng_record_table *t;
	u16 status;

	if (p->tables == p->blob->engine.table_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, p->tables,
			      p->blob->engine.table_count);
	if (length < sizeof(*t))
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, length, sizeof(*t));
	t = &p->blob->tables[p->tables];
	memcpy(t, p->data + at, sizeof(*t));
	status = blob_check_table(p, at, t, &p->blob->kernels[p->tables]);
	p->tables++;
	return status ? status : blob_extends_table(p, at);
}

/*
 * Finds the table that a record belongs to: its number is the first field of each such record.
 * @next: tables before this one have had their record of that type, or get none.
 */
static u16 find_owner(struct parser *p, u64 at, u64 length, u64 size, u32 *next, u32 *table)
{
	u64 place = at + sizeof(struct embeng_record);

	if (p->tables != p->blob->engine.table_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, p->tables,
			      p->blob->engine.table_count);
	if (length < size)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, length, size);
	memcpy(table, p->data + place, sizeof(*table));
	if (*table < *next)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, place, *table, *next);
	if (*table >= p->tables)
		return broken(p, EMBENG_STATUS_BLOB_VALUE, place, *table, p->tables);
	*next = *table + 1;
	return 0;
}

static u16 take_quantization_record(struct parser *p, u64 at, u64 length)
{
	struct embeng_record_quantization *q;
	u32 table;
	u16 status = find_owner(p, at, length, sizeof(*q), &p->quantized, &table);

	if (status)
		return status;
	q = &p->blob->quantizations[table];
	memcpy(q, p->data + at, sizeof(*q));
	return blob_check_quantization(p, at, q);
}

static u16 take_shard_record(struct parser *p, u64 at, u64 length)
{
	struct embeng_record_shard *s;
	u32 table;
	u16 status = find_owner(p, at, length, sizeof(*s), &p->sharded, &table);

	if (status)
		return status;
	s = &p->blob->shards[table];
	memcpy(s, p->data + at, sizeof(*s));
	return blob_check_shard(p, at, s);
}

static u16 check_feature_record(struct parser *p, u64 at, struct embeng_record_feature *f)
{
	u16 status = 0;

	if (f->table >= p->blob->engine.table_count)
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_feature, table),
				f->table, p->blob->engine.table_count);
	if (!status && f->flags & ~EMBENG_FEATURE_FINITE_WEIGHTS)
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_feature, flags),
				f->flags, EMBENG_FEATURE_FINITE_WEIGHTS);
	if (!status)
		status = value_above(p, AT(at, embeng_record_feature, max_sequence_length),
				     f->max_sequence_length, p->caps->samples);
	if (!status)
		status = value_above(p, AT(at, embeng_record_feature, reserved), f->reserved, 0);
	if (!status)
		status = value_above(p, AT(at, embeng_record_feature, max_samples), f->max_samples,
				     p->caps->samples);
	if (!status)
		status = value_above(p, AT(at, embeng_record_feature, max_ids), f->max_ids,
				     p->caps->ids);
	return status;
}

static u16 take_feature_record(struct parser *p, u64 at, u64 length)
{
	struct embeng_record_feature *f;
	u16 status;

	if (p->tables != p->blob->engine.table_count ||
	    p->features == p->blob->engine.feature_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, p->features,
			      p->blob->engine.feature_count);
	if (length < sizeof(*f))
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, length, sizeof(*f));
	f = &p->blob->features[p->features];
	memcpy(f, p->data + at, sizeof(*f));
	p->features++;
	status = check_feature_record(p, at, f);
	return status ? status : blob_extends_feature(p, at);
}

static u16 take_rate_record(struct parser *p, u64 at, u64 length)
{
	if (p->tables != p->blob->engine.table_count ||
	    p->features != p->blob->engine.feature_count || p->rates == p->blob->engine.rate_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, p->rates,
			      p->blob->engine.rate_count);
	p->rates++;
	for (u64 i = sizeof(struct embeng_record); i < length; i++) {
		if (p->data[at + i])
			return broken(p, EMBENG_STATUS_BLOB_VALUE, at + i, p->data[at + i], 0);
	}
	return 0;
}

static u16 check_engine_record(struct parser *p, u64 at, const struct embeng_record_engine *e)
{
	u32 policies = EMBENG_ENGINE_GRADIENTS_DROP | EMBENG_ENGINE_GRADIENTS_ALLOW;
	u32 flags = p->caps->features & EMBENG_CAP_PIPELINING ? EMBENG_ENGINE_PIPELINING : 0;
	u16 status;

	status = value_within(p, AT(at, embeng_record_engine, replicas), e->replicas, 1,
			      p->caps->replicas);
	flags |= (e->flags & policies) == policies ? EMBENG_ENGINE_GRADIENTS_DROP : policies;
	if (!status && e->flags & ~flags)
		status = broken(p, EMBENG_STATUS_BLOB_VALUE, AT(at, embeng_record_engine, flags),
				e->flags, flags);
	if (!status)
		status = value_above(p, AT(at, embeng_record_engine, table_count), e->table_count,
				     p->caps->tables);
	if (!status)
		status = value_above(p, AT(at, embeng_record_engine, feature_count),
				     e->feature_count, p->caps->model_features);
	/* A rate that no table uses would be pointless, and this bounds the count. */
	if (!status)
		status = value_above(p, AT(at, embeng_record_engine, rate_count), e->rate_count,
				     (u64)p->caps->tables * EMBENG_TABLE_RATES_MAX);
	if (!status)
		status = value_above(p, AT(at, embeng_record_engine, step_depth), e->step_depth,
				     p->caps->step_depth);
	return status;
}

static u16 take_engine_record(struct parser *p, u64 at, u64 length)
{
	struct embeng_record_engine *e = &p->blob->engine;
	u16 status;

	if (p->begun || length < sizeof(*e))
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, length, sizeof(*e));
	memcpy(e, p->data + at, sizeof(*e));
	status = check_engine_record(p, at, e);
	if (status)
		return status;
	if (!e->step_depth)
		e->step_depth = p->caps->step_depth;
	status = blob_extends_engine(p, at);
	if (status)
		return status;
	p->blob->tables = port_alloc(((u64)e->table_count + 1) * sizeof(*p->blob->tables));
	p->blob->kernels = port_alloc(((u64)e->table_count + 1) * sizeof(*p->blob->kernels));
	p->blob->quantizations = port_alloc(((u64)e->table_count + 1) *
					    sizeof(*p->blob->quantizations));
	p->blob->shards = port_alloc(((u64)e->table_count + 1) * sizeof(*p->blob->shards));
	p->blob->features = port_alloc(((u64)e->feature_count + 1) * sizeof(*p->blob->features));
	p->blob->limits = port_alloc(((u64)e->rate_count + 1) * sizeof(*p->blob->limits));
	if (!p->blob->tables || !p->blob->kernels || !p->blob->quantizations || !p->blob->shards ||
	    !p->blob->features || !p->blob->limits)
		return broken(p, EMBENG_STATUS_NO_MEMORY, at, 0, 0);
	p->begun = true;
	return 0;
}

static u16 take_record(struct parser *p, u64 at, const struct embeng_record *head)
{
	if (head->flags & ~EMBENG_RECORD_MANDATORY)
		return broken(p, EMBENG_STATUS_RESERVED, at, head->flags, EMBENG_RECORD_MANDATORY);
	if (!(head->flags & EMBENG_RECORD_MANDATORY))
		return 0;
	p->hash = fnv1a(p->hash, p->data + at, head->length);
	if (head->type == EMBENG_RECORD_ENGINE)
		return take_engine_record(p, at, head->length);
	if (!p->begun)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, head->type, EMBENG_RECORD_ENGINE);
	switch (head->type) {
	case EMBENG_RECORD_TABLE:
		return take_table_record(p, at, head->length);
	case EMBENG_RECORD_FEATURE:
		return take_feature_record(p, at, head->length);
	case EMBENG_RECORD_RATE:
		return take_rate_record(p, at, head->length);
	case EMBENG_RECORD_QUANTIZATION:
		if (p->caps->features & EMBENG_CAP_QUANTIZATION)
			return take_quantization_record(p, at, head->length);
		break;
	case EMBENG_RECORD_SHARD:
		if (p->caps->features & EMBENG_CAP_SHARDS)
			return take_shard_record(p, at, head->length);
		break;
	}
	return broken(p, EMBENG_STATUS_BLOB_RECORD, at, head->type, 0);
}

static u16 take_records(struct parser *p, u32 count)
{
	struct embeng_record head;
	u64 at = sizeof(struct embeng_blob_header);
	u16 status;

	for (u32 i = 0; i < count; i++, at += head.length) {
		if (p->length - at < sizeof(head))
			return broken(p, EMBENG_STATUS_BLOB_FRAME, at, p->length - at,
				      sizeof(head));
		memcpy(&head, p->data + at, sizeof(head));
		if (head.length < sizeof(head) || head.length % BLOB_ALIGN ||
		    head.length > p->length - at)
			return broken(p, EMBENG_STATUS_BLOB_FRAME, at, head.length, p->length - at);
		status = take_record(p, at, &head);
		if (status)
			return status;
	}
	if (at != p->length)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, at, at, p->length);
	return 0;
}

static u16 check_record_counts(struct parser *p)
{
	const struct embeng_record_engine *e = &p->blob->engine;

	if (!p->begun)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, p->length, 0, 1);
	if (p->tables != e->table_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, p->length, p->tables, e->table_count);
	if (p->features != e->feature_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, p->length, p->features,
			      e->feature_count);
	if (p->rates != e->rate_count)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, p->length, p->rates, e->rate_count);
	return 0;
}

static u16 check_blob_frame(struct parser *p, struct embeng_blob_header *header)
{
	u32 crc;

	if (p->length < sizeof(*header))
		return broken(p, EMBENG_STATUS_BLOB_FRAME, 0, p->length, sizeof(*header));
	memcpy(header, p->data, sizeof(*header));
	if (header->magic != EMBENG_BLOB_MAGIC)
		return broken(p, EMBENG_STATUS_BLOB_FRAME, 0, header->magic, EMBENG_BLOB_MAGIC);
	if (header->version != EMBENG_BLOB_VERSION)
		return broken(p, EMBENG_STATUS_BLOB_FRAME,
			      offsetof(struct embeng_blob_header, version), header->version,
			      EMBENG_BLOB_VERSION);
	if (header->length != p->length || p->length % BLOB_ALIGN)
		return broken(p, EMBENG_STATUS_BLOB_FRAME,
			      offsetof(struct embeng_blob_header, length), header->length,
			      p->length);
	crc = header->crc32c;
	header->crc32c = 0;
	crc ^= crc32c(crc32c(0, header, sizeof(*header)), p->data + sizeof(*header),
		      p->length - sizeof(*header));
	if (crc)
		return broken(p, EMBENG_STATUS_BLOB_CRC,
			      offsetof(struct embeng_blob_header, crc32c), 0, 0);
	return 0;
}

u16 blob_parse(const void *data, u64 length, const struct embeng_caps *caps, struct blob *blob,
	       struct fault *fault)
{
	return blob_parse_more(data, length, caps, NULL, blob, fault);
}

u16 blob_parse_more(const void *data, u64 length, const struct embeng_caps *caps,
		    const struct blob *before, struct blob *blob, struct fault *fault)
{
	struct parser p = { .data = data,
			    .length = length,
			    .caps = caps,
			    .before = before,
			    .blob = blob,
			    .fault = fault,
			    .hash = FNV1A_START };
	struct embeng_blob_header header;
	u16 status;

	memset(blob, 0, sizeof(*blob));
	status = check_blob_frame(&p, &header);
	if (!status)
		status = take_records(&p, header.record_count);
	if (!status)
		status = check_record_counts(&p);
	if (!status)
		status = blob_extends_quantizations(&p);
	if (!status)
		status = blob_extends_shards(&p);
	if (!status && p.hash != header.hash)
		status = broken(&p, EMBENG_STATUS_BLOB_FRAME,
				offsetof(struct embeng_blob_header, hash), header.hash, p.hash);
	blob->hash = header.hash;
	return status;
}

void blob_free(struct blob *blob)
{
	port_free(blob->tables);
	port_free(blob->kernels);
	port_free(blob->quantizations);
	port_free(blob->shards);
	port_free(blob->features);
	port_free(blob->limits);
	memset(blob, 0, sizeof(*blob));
}
