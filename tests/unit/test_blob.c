/* SPDX-License-Identifier: MIT */
#include "direct_main.h"
#include "direct_model.h"

#define TABLE_AT (sizeof(struct embeng_blob_header) + sizeof(struct embeng_record_engine))

static void refused(const struct direct_blob *b, u16 status, u64 element)
{
	struct direct *d = direct_new(1, NULL);
	struct command *command = direct_command(&d->transfer, EMBENG_OP_MODEL_LOAD);

	memcpy(direct_memory(d, b->length, &command->cmd.desc), b->data, b->length);
	ck_assert_int_eq(direct_submit(d, command), VERDICT_FAILED);
	ck_assert_uint_eq(command->fault.status, status);
	ck_assert_uint_eq(command->fault.element, element);
	ck_assert_ptr_null(d->context.model);
	free(command);
	direct_free(d);
}

#define REFUSE_VALUE(set, at)                                            \
	do {                                                             \
		struct small_model m = small_model(10, 4);               \
		set;                                                     \
		small_blob(&m, &blob);                                   \
		refused(&blob, EMBENG_STATUS_BLOB_VALUE, at);            \
	} while (0)
#define IN_TABLE(member) (TABLE_AT + offsetof(struct embeng_record_table, member))

static struct direct_blob blob;

START_TEST(test_values_outside_their_limits)
{
	REFUSE_VALUE(m.table.rows = 0, IN_TABLE(rows));
	REFUSE_VALUE(m.table.dim = 4097, IN_TABLE(dim));
	REFUSE_VALUE(m.table.flags = 8, IN_TABLE(flags));
	REFUSE_VALUE(m.table.combiner = 3, IN_TABLE(combiner));
	REFUSE_VALUE(m.table.out_of_range = 4, IN_TABLE(out_of_range));
	REFUSE_VALUE(m.table.optimizer = 9, IN_TABLE(optimizer));
	REFUSE_VALUE(m.table.slot_count = 1, IN_TABLE(slot_count));
	REFUSE_VALUE(m.table.rate = 0x7fc00000, IN_TABLE(rate));
	REFUSE_VALUE(m.table.flags = EMBENG_TABLE_RATE_DYNAMIC, IN_TABLE(rate));
	REFUSE_VALUE(m.table.clip_weight_min = 0x7f800000; m.table.clip_weight_max = 0,
		     IN_TABLE(clip_weight_min));
	REFUSE_VALUE(m.table.hyperparameter[2] = 0xffc00001, IN_TABLE(hyperparameter) + 8);
	REFUSE_VALUE(m.engine.replicas = 0, 32 + 8);
	REFUSE_VALUE(m.feature.table = 1, TABLE_AT + sizeof(struct embeng_record_table) + 8);
}
END_TEST

START_TEST(test_a_broken_frame)
{
	struct small_model m = small_model(10, 4);

	small_blob(&m, &blob);
	blob.data[0] ^= 1;
	refused(&blob, EMBENG_STATUS_BLOB_FRAME, 0);
	small_blob(&m, &blob);
	blob.data[blob.length - 1] ^= 1;
	refused(&blob, EMBENG_STATUS_BLOB_CRC, offsetof(struct embeng_blob_header, crc32c));
	small_blob(&m, &blob);
	blob.length -= 8;
	refused(&blob, EMBENG_STATUS_BLOB_FRAME, offsetof(struct embeng_blob_header, length));
}
END_TEST

START_TEST(test_unknown_records)
{
	struct small_model m = small_model(10, 4);
	struct embeng_record unknown[2] = { { 0 } };
	struct direct *d;
	u64 at;

	small_blob(&m, &blob);
	at = blob.length;
	blob_record(&blob, 77, unknown, sizeof(unknown));
	blob_seal(&blob);
	refused(&blob, EMBENG_STATUS_BLOB_RECORD, at);
	blob.data[at + offsetof(struct embeng_record, flags)] = 0;
	blob.header.crc32c = 0;
	blob.header.hash = fnv1a(FNV1A_START, blob.data + sizeof(blob.header),
				 at - sizeof(blob.header));
	memcpy(blob.data, &blob.header, sizeof(blob.header));
	blob.header.crc32c = crc32c(0, blob.data, blob.length);
	memcpy(blob.data, &blob.header, sizeof(blob.header));
	d = direct_new(1, NULL);
	ck_assert_uint_eq(direct_load(d, &blob), 0);
	direct_free(d);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { test_values_outside_their_limits, test_a_broken_frame,
				       test_unknown_records, NULL };

	return direct_main("blob", tests);
}
