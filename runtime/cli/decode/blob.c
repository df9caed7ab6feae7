// SPDX-License-Identifier: MIT
/*
 * Reads a model blob: "DOC: model blob" of embeng_engine.h. The engine's own parser says what is
 * wrong with it, for a device without limits of its own; the records are then shown as far as their
 * lengths lead.
 *
 * The parser's arrays live for the time of the check.
 */
#include <inttypes.h>
#include <string.h>

#include "../../../engine/blob/blob.h"
#include "readers.h"
#include "words.h"

bool blob_is(const struct bytes *b)
{
	return b->size >= 4 && bytes_number(b->data, 4) == EMBENG_BLOB_MAGIC;
}

/* A device that can do everything; no count can be larger than its records need bytes. */
static struct embeng_caps boundless_caps(size_t size)
{
	return (struct embeng_caps){
		.features = ~0u,
		.dim = UINT32_MAX,
		.tables = (uint32_t)(size / sizeof(struct embeng_record_table)),
		.model_features = (uint32_t)(size / sizeof(struct embeng_record_feature)),
		.replicas = UINT32_MAX,
		.step_depth = UINT32_MAX,
		.row_dtypes = ~0u,
		.ids = UINT64_MAX,
		.samples = UINT64_MAX,
		.combiners = ~0u,
		.optimizers = ~0u,
	};
}

static void check_blob(struct sheet *s, const struct bytes *b)
{
	struct embeng_caps caps = boundless_caps(b->size);
	struct fault fault = {0};
	struct blob blob;

	if (blob_parse(b->data, b->size, &caps, &blob, &fault))
		sheet_odd(s, fault.element,
			  "the engine refuses the blob with %s: value %llu (%#llx), allowed %llu "
			  "(%#llx): %s",
			  word_or_unknown(word_status(fault.status)),
			  (unsigned long long)fault.value, (unsigned long long)fault.value,
			  (unsigned long long)fault.limit, (unsigned long long)fault.limit,
			  word_or_unknown(word_status_sentence(fault.status)));
	blob_free(&blob);
}

static float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

#define NUMBER(record, member, words) \
	sheet_number(s, at + offsetof(struct embeng_record_##record, member), #member, r.member, \
		     words)
#define FLOAT(record, member) \
	sheet_text(s, at + offsetof(struct embeng_record_##record, member), #member, "%g (%#x)", \
		   (double)float_of(r.member), r.member)
#define FLAGS(record, member) \
	sheet_text(s, at + offsetof(struct embeng_record_##record, member), #member, "%#x", \
		   r.member)

static void show_engine_record(struct sheet *s, const unsigned char *data, uint64_t at)
{
	struct embeng_record_engine r;

	memcpy(&r, data + at, sizeof(r));
	sheet_says(s, "%u tables, %u features, %u replicas%s", r.table_count, r.feature_count,
		   r.replicas, r.flags & EMBENG_ENGINE_PIPELINING ? ", with pipelining" : "");
	NUMBER(engine, replicas, NULL);
	FLAGS(engine, flags);
	NUMBER(engine, table_count, NULL);
	NUMBER(engine, feature_count, NULL);
	NUMBER(engine, rate_count, NULL);
	NUMBER(engine, step_depth, r.step_depth ? NULL : "as many as the device has");
}

static void show_table_record(struct sheet *s, const unsigned char *data, uint64_t at)
{
	struct embeng_record_table r;

	memcpy(&r, data + at, sizeof(r));
	sheet_says(s, "%llu rows of %u columns, %s, optimizer %s", (unsigned long long)r.rows,
		   r.dim, word_or_unknown(word_combiner(r.combiner)),
		   word_or_unknown(word_optimizer(r.optimizer)));
	NUMBER(table, rows, NULL);
	NUMBER(table, dim, NULL);
	FLAGS(table, flags);
	NUMBER(table, combiner, word_combiner(r.combiner));
	NUMBER(table, out_of_range, word_out_of_range(r.out_of_range));
	NUMBER(table, optimizer, word_optimizer(r.optimizer));
	NUMBER(table, slot_count, NULL);
	if (r.flags & EMBENG_TABLE_RATE_DYNAMIC)
		NUMBER(table, rate, "index of a RATE");
	else
		FLOAT(table, rate);
	FLOAT(table, weight_decay);
	FLOAT(table, clip_gradient_min);
	FLOAT(table, clip_gradient_max);
	FLOAT(table, clip_weight_min);
	FLOAT(table, clip_weight_max);
	for (size_t i = 0; i < EMBENG_SLOTS_MAX && i < r.slot_count; i++)
		sheet_text(s, at + offsetof(struct embeng_record_table, slot_start) + 4 * i,
			   "slot_start", "%g", (double)float_of(r.slot_start[i]));
	for (size_t i = 0; i < EMBENG_HYPERPARAMETERS_MAX; i++) {
		if (r.hyperparameter[i])
			sheet_text(s,
				   at + offsetof(struct embeng_record_table, hyperparameter) +
					   4 * i,
				   "hyperparameter", "%zu: %g (%#x)", i,
				   (double)float_of(r.hyperparameter[i]), r.hyperparameter[i]);
	}
	NUMBER(table, step_rate, NULL);
	FLOAT(table, max_norm);
}

static void show_feature_record(struct sheet *s, const unsigned char *data, uint64_t at)
{
	struct embeng_record_feature r;

	memcpy(&r, data + at, sizeof(r));
	sheet_says(s, "reads table %u%s", r.table, r.max_sequence_length ? ", as a sequence" : "");
	NUMBER(feature, table, NULL);
	FLAGS(feature, flags);
	NUMBER(feature, max_sequence_length, r.max_sequence_length ? NULL : "pooled");
	NUMBER(feature, reserved, NULL);
	NUMBER(feature, max_samples, r.max_samples ? NULL : "the device's limit");
	NUMBER(feature, max_ids, r.max_ids ? NULL : "the device's limit");
}

static void show_quantization_record(struct sheet *s, const unsigned char *data, uint64_t at)
{
	struct embeng_record_quantization r;

	memcpy(&r, data + at, sizeof(r));
	NUMBER(quantization, table, NULL);
	NUMBER(quantization, num_buckets, NULL);
	FLOAT(quantization, lower);
	FLOAT(quantization, upper);
}

static void show_shard_record(struct sheet *s, const unsigned char *data, uint64_t at)
{
	struct embeng_record_shard r;

	memcpy(&r, data + at, sizeof(r));
	sheet_says(
		s,
		"table %u is a part of a table of %llu rows and %u columns: its row i is row %llu "
		"+ i * %llu, its column j is column %u + j",
		r.table, (unsigned long long)r.whole_rows, r.whole_dim,
		(unsigned long long)r.first_row, (unsigned long long)r.row_step, r.first_column);
	NUMBER(shard, table, NULL);
	NUMBER(shard, first_column, NULL);
	NUMBER(shard, whole_rows, NULL);
	NUMBER(shard, first_row, NULL);
	NUMBER(shard, row_step, NULL);
	NUMBER(shard, whole_dim, NULL);
	NUMBER(shard, reserved, NULL);
}

static void show_name_record(struct sheet *s, const unsigned char *data, uint64_t at)
{
	struct embeng_record_name r;

	memcpy(&r, data + at, sizeof(r));
	sheet_says(s, "%s %u is called '%.64s'", word_or_unknown(word_record(r.of)), r.index,
		   r.name);
	NUMBER(name, of, word_record(r.of));
	NUMBER(name, index, NULL);
	sheet_text(s, at + offsetof(struct embeng_record_name, name), "name", "%.64s", r.name);
	if (!memchr(r.name, 0, sizeof(r.name)))
		sheet_odd(s, at + offsetof(struct embeng_record_name, name),
			  "no zero byte ends the name");
}

static const struct {
	size_t bytes;
	void (*show)(struct sheet *s, const unsigned char *data, uint64_t at);
} records[] = {
	[EMBENG_RECORD_ENGINE] = {sizeof(struct embeng_record_engine), show_engine_record},
	[EMBENG_RECORD_TABLE] = {sizeof(struct embeng_record_table), show_table_record},
	[EMBENG_RECORD_FEATURE] = {sizeof(struct embeng_record_feature), show_feature_record},
	[EMBENG_RECORD_NAME] = {sizeof(struct embeng_record_name), show_name_record},
	[EMBENG_RECORD_QUANTIZATION] = {sizeof(struct embeng_record_quantization),
					show_quantization_record},
	[EMBENG_RECORD_SHARD] = {sizeof(struct embeng_record_shard), show_shard_record},
};

#define RECORDS (sizeof(records) / sizeof(records[0]))

static void show_header(struct sheet *s, const struct bytes *b)
{
	struct embeng_blob_header h;

	sheet_part(s, 0, "header");
	if (b->size < sizeof(h)) {
		sheet_odd(s, b->size, "the file ends inside of the header");
		return;
	}
	memcpy(&h, b->data, sizeof(h));
	sheet_number(s, offsetof(struct embeng_blob_header, version), "version", h.version, NULL);
	sheet_number(s, offsetof(struct embeng_blob_header, length), "length", h.length, "bytes");
	sheet_number(s, offsetof(struct embeng_blob_header, record_count), "record_count",
		     h.record_count, NULL);
	sheet_text(s, offsetof(struct embeng_blob_header, crc32c), "crc32c", "%#010x", h.crc32c);
	sheet_text(s, offsetof(struct embeng_blob_header, hash), "hash", "%016llx",
		   (unsigned long long)h.hash);
	sheet_verdict(s, "A model blob of %llu bytes with %u records, hash %016llx.",
		      (unsigned long long)h.length, h.record_count, (unsigned long long)h.hash);
	check_blob(s, b);
}

void blob_read(struct sheet *s, const struct bytes *b)
{
	uint32_t counts[RECORDS] = {0};
	struct embeng_record head;
	uint64_t at = sizeof(struct embeng_blob_header);

	show_header(s, b);
	for (; at < b->size; at += head.length) {
		if (b->size - at < sizeof(head)) {
			sheet_odd(s, at, "the file ends inside of a record");
			return;
		}
		memcpy(&head, b->data + at, sizeof(head));
		sheet_part(s, at, "record %s %u", word_or_unknown(word_record(head.type)),
			   head.type < RECORDS ? counts[head.type]++ : head.type);
		sheet_number(s, at, "type", head.type, word_record(head.type));
		sheet_number(s, at + offsetof(struct embeng_record, flags), "record_flags",
			     head.flags, head.flags & EMBENG_RECORD_MANDATORY ? "mandatory" : NULL);
		sheet_number(s, at + offsetof(struct embeng_record, length), "record_length",
			     head.length, "bytes");
		if (head.length < sizeof(head) || head.length > b->size - at) {
			sheet_odd(s, at + offsetof(struct embeng_record, length),
				  "the record's length %u leaves the blob, which has %" PRIu64
				  " more bytes",
				  head.length, (uint64_t)(b->size - at));
			return;
		}
		if (head.type < RECORDS && records[head.type].show &&
		    head.length >= records[head.type].bytes)
			records[head.type].show(s, b->data, at);
	}
}
