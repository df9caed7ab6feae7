/* SPDX-License-Identifier: MIT */
/* The frame of a model blob: its header, its records' heads, their order and number. */
#include "blob_refused.h"
#include "direct_main.h"

#define ENGINE_AT sizeof(struct embeng_blob_header)
#define TABLE_AT (ENGINE_AT + sizeof(struct embeng_record_engine))
#define FEATURE_AT (TABLE_AT + sizeof(struct embeng_record_table))
#define END_AT (FEATURE_AT + sizeof(struct embeng_record_feature))
#define IN_HEADER(member) offsetof(struct embeng_blob_header, member)

static struct direct_blob blob;

static struct direct_blob *fresh(void)
{
	struct small_model m = small_model(10, 4);

	small_blob(&m, &blob);
	return &blob;
}

static struct embeng_record *head_at(u64 at)
{
	return (struct embeng_record *)(blob.data + at);
}

/* The CRC alone made right. */
static void checksum(struct direct_blob *b)
{
	memset(b->data + IN_HEADER(crc32c), 0, 4);
	b->header.crc32c = crc32c(0, b->data, b->length);
	memcpy(b->data + IN_HEADER(crc32c), &b->header.crc32c, 4);
}

static void broken_frame(u64 element, u64 value, u64 limit)
{
	struct embeng_caps caps = blob_caps();

	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_FRAME, element, value, limit});
}

START_TEST(test_header)
{
	struct embeng_caps caps = blob_caps();
	u64 length = fresh()->length;

	blob.length = 24;
	broken_frame(0, 24, sizeof(struct embeng_blob_header));
	fresh()->data[0] ^= 1;
	broken_frame(0, EMBENG_BLOB_MAGIC ^ 1, EMBENG_BLOB_MAGIC);
	fresh()->data[IN_HEADER(version)] = 2;
	broken_frame(IN_HEADER(version), 2, 1);
	fresh()->length -= 8;
	broken_frame(IN_HEADER(length), length, length - 8);
	fresh()->length += 4;
	blob.data[IN_HEADER(length)] += 4;
	broken_frame(IN_HEADER(length), length + 4, length + 4);
	fresh()->data[length - 1] ^= 1;
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_CRC, IN_HEADER(crc32c), 0, 0});
	fresh()->data[IN_HEADER(crc32c)] ^= 1;
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_BLOB_CRC, IN_HEADER(crc32c), 0, 0});
}
END_TEST

START_TEST(test_hash)
{
	u64 hash = fresh()->header.hash;

	blob.data[IN_HEADER(hash)] ^= 1;
	checksum(&blob);
	broken_frame(IN_HEADER(hash), hash ^ 1, hash);
	blob_taken(fresh());
}
END_TEST

START_TEST(test_heads)
{
	struct embeng_caps caps = blob_caps();

	fresh()->header.record_count++;
	blob_seal(&blob);
	broken_frame(END_AT, 0, sizeof(struct embeng_record));
	head_at(fresh()->length - sizeof(struct embeng_record_feature))->length = 0;
	blob_seal(&blob);
	broken_frame(FEATURE_AT, 0, sizeof(struct embeng_record_feature));
	fresh();
	head_at(FEATURE_AT)->length -= 4;
	blob_seal(&blob);
	broken_frame(FEATURE_AT, sizeof(struct embeng_record_feature) - 4,
		     sizeof(struct embeng_record_feature));
	fresh();
	head_at(FEATURE_AT)->length += 8;
	blob_seal(&blob);
	broken_frame(FEATURE_AT, sizeof(struct embeng_record_feature) + 8,
		     sizeof(struct embeng_record_feature));
	fresh()->length += 8;
	blob_seal(&blob);
	broken_frame(END_AT, END_AT, END_AT + 8);
	fresh();
	head_at(TABLE_AT)->flags |= 4;
	blob_seal(&blob);
	blob_refused(&blob, &caps,
		     (struct refusal){EMBENG_STATUS_RESERVED, TABLE_AT, EMBENG_RECORD_MANDATORY | 4,
				      EMBENG_RECORD_MANDATORY});
}
END_TEST

/* Records in this order: e, t, q, s, f, r as in their names, T, Q, S, F, E cut short by 8 bytes. */
static void records(const char *order, u32 tables, u32 features, u32 rates)
{
	struct small_model m = small_model(10, 4);
	struct embeng_record_quantization q = {.num_buckets = 2, .upper = 1};
	struct embeng_record_shard shard = {.whole_rows = 10, .row_step = 1, .whole_dim = 4};
	struct embeng_record rate = {0};

	m.engine.table_count = tables;
	m.engine.feature_count = features;
	m.engine.rate_count = rates;
	memset(&blob, 0, sizeof(blob));
	blob.length = sizeof(blob.header);
	for (; *order; order++) {
		u32 cut = *order < 'a' ? 8 : 0;

		switch (*order | 0x20) {
		case 'e':
			blob_record(&blob, EMBENG_RECORD_ENGINE, &m.engine, sizeof(m.engine) - cut);
			break;
		case 't':
			blob_record(&blob, EMBENG_RECORD_TABLE, &m.table, sizeof(m.table) - cut);
			break;
		case 'q':
			blob_record(&blob, EMBENG_RECORD_QUANTIZATION, &q, sizeof(q) - cut);
			break;
		case 's':
			blob_record(&blob, EMBENG_RECORD_SHARD, &shard, sizeof(shard) - cut);
			break;
		case 'f':
			blob_record(&blob, EMBENG_RECORD_FEATURE, &m.feature,
				    sizeof(m.feature) - cut);
			break;
		case 'r':
			blob_record(&blob, EMBENG_RECORD_RATE, &rate, sizeof(rate));
			break;
		}
	}
	blob_seal(&blob);
}

#define TABLE sizeof(struct embeng_record_table)
#define FEATURE sizeof(struct embeng_record_feature)

START_TEST(test_engine_record)
{
	records("tf", 1, 1, 0);
	broken_frame(ENGINE_AT, EMBENG_RECORD_TABLE, EMBENG_RECORD_ENGINE);
	records("etef", 1, 1, 0);
	broken_frame(TABLE_AT + TABLE, TABLE_AT - ENGINE_AT, TABLE_AT - ENGINE_AT);
	records("Etf", 1, 1, 0);
	broken_frame(ENGINE_AT, TABLE_AT - ENGINE_AT - 8, TABLE_AT - ENGINE_AT);
	records("", 0, 0, 0);
	broken_frame(ENGINE_AT, 0, 1);
}
END_TEST

START_TEST(test_order_and_number_of_records)
{
	records("etfr", 1, 1, 1);
	blob_taken(&blob);
	records("etft", 2, 1, 0);
	broken_frame(FEATURE_AT, 0, 1);
	records("etrt", 2, 0, 1);
	broken_frame(FEATURE_AT, 0, 1);
	records("ett", 1, 0, 0);
	broken_frame(FEATURE_AT, 1, 1);
	records("etft", 1, 1, 0);
	broken_frame(END_AT, 1, 1);
	records("eT", 1, 0, 0);
	broken_frame(TABLE_AT, TABLE - 8, TABLE);
	records("eft", 1, 1, 0);
	broken_frame(TABLE_AT, 0, 1);
	records("etffr", 1, 1, 1);
	broken_frame(FEATURE_AT + FEATURE, 1, 1);
	records("etF", 1, 1, 0);
	broken_frame(FEATURE_AT, FEATURE - 8, FEATURE);
	records("etqfr", 1, 1, 1);
	blob_taken(&blob);
	records("eqt", 1, 0, 0);
	broken_frame(TABLE_AT, 0, 1);
	records("etQ", 1, 0, 0);
	broken_frame(FEATURE_AT, 16, 24);
	records("etsqfr", 1, 1, 1);
	blob_taken(&blob);
	records("etqfrs", 1, 1, 1);
	blob_taken(&blob);
	records("est", 1, 0, 0);
	broken_frame(TABLE_AT, 0, 1);
	records("etS", 1, 0, 0);
	broken_frame(FEATURE_AT, 40, 48);
	records("er", 0, 0, 0);
	broken_frame(TABLE_AT, 0, 0);
	records("erf", 1, 0, 1);
	broken_frame(TABLE_AT, 0, 1);
	records("etrf", 1, 1, 1);
	broken_frame(FEATURE_AT, 0, 1);
	records("etfrr", 1, 1, 1);
	broken_frame(END_AT + 8, 1, 1);
}
END_TEST

START_TEST(test_missing_records)
{
	records("et", 2, 0, 0);
	broken_frame(FEATURE_AT, 1, 2);
	records("etf", 1, 2, 0);
	broken_frame(END_AT, 1, 2);
	records("etfr", 1, 1, 2);
	broken_frame(END_AT + 8, 1, 2);
}
END_TEST

START_TEST(test_rate_with_a_payload)
{
	struct embeng_caps caps = blob_caps();
	u64 rate[3] = {0};

	records("etf", 1, 1, 1);
	rate[2] = 7ull << 8;
	blob_record(&blob, EMBENG_RECORD_RATE, rate, sizeof(rate));
	blob_seal(&blob);
	blob_refused(&blob, &caps, (struct refusal){EMBENG_STATUS_BLOB_VALUE, END_AT + 17, 7, 0});
}
END_TEST

START_TEST(test_unknown_records)
{
	static const u16 types[] = {0, EMBENG_RECORD_PROGRAM, 77};
	struct embeng_record unknown[2] = {{0}};
	struct embeng_caps caps = blob_caps();

	for (u32 i = 0; i < 3; i++) {
		u64 hash = fresh()->header.hash;

		blob_record(&blob, types[i], unknown, sizeof(unknown));
		blob_seal(&blob);
		blob_refused(&blob, &caps,
			     (struct refusal){EMBENG_STATUS_BLOB_RECORD, END_AT, types[i], 0});
		head_at(END_AT)->flags = 0;
		blob.header.hash = hash;
		memcpy(blob.data + IN_HEADER(hash), &hash, sizeof(hash));
		checksum(&blob);
		blob_taken(&blob);
	}
}
END_TEST

START_TEST(test_a_refused_model_is_gone)
{
	struct direct *d = direct_new(1, NULL);
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);

	fresh()->data[0] ^= 1;
	memcpy(direct_memory(d, blob.length, &command->cmd.desc), blob.data, blob.length);
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, EMBENG_STATUS_BLOB_FRAME);
	ck_assert_uint_eq(command->fault.field, EMBENG_FIELD_BLOB);
	ck_assert_uint_eq(command->fault.feature, EMBENG_NO_INDEX);
	ck_assert_ptr_null(d->context.model);
	free(command);
	ck_assert_uint_eq(direct_load(d, fresh()), 0);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_header,
				      test_hash,
				      test_heads,
				      test_engine_record,
				      test_order_and_number_of_records,
				      test_missing_records,
				      test_rate_with_a_payload,
				      test_unknown_records,
				      test_a_refused_model_is_gone,
				      NULL};

	return direct_main("blob", tests);
}
