// SPDX-License-Identifier: MIT
/*
 * Whatever a device refuses of a table or feature is said with its name, for each status.
 * The values of a model are walked in test_blob_refusals.c.
 */
#include <stdio.h>

#include "runtime/src/session/session.h"
#include "session_help.h"

static void refuse_open(struct embeng_table_config t, const char *setting, const char *limit)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e;

	t.size = sizeof(t);
	t.name = "llm";
	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_lt(embeng_open("soft:cores=1,memory=64M", m, &e, &error), 0);
	ck_assert_msg(strstr(error.text, "table llm") && strstr(error.text, setting) &&
			      strstr(error.text, limit),
		      "%s", error.text);
	embeng_model_free(m);
}

START_TEST(test_limits_of_the_device)
{
	for (int64_t dim = 4097; dim < UINT32_MAX; dim = 2 * dim)
		refuse_open((struct embeng_table_config){.vocabulary_size = 2, .dim = dim}, "dim",
			    "at most 4096");
	refuse_open((struct embeng_table_config){.vocabulary_size = 1 << 30, .dim = 4},
		    "vocabulary_size 1073741824", "bytes are needed");
}
END_TEST

static struct embeng *open_kind(struct embeng_optimizer optimizer)
{
	struct shape shape = {.replicas = 1, .depth = 1, .optimizer = optimizer};

	return open_small(&shape);
}

/* Whatever the engine says of a table or feature by number has its name in the sentence. */
START_TEST(test_commands_are_refused_by_name)
{
	struct embeng *e = open_kind(embeng_adagrad(0.5f));

#define NAMED(status_name, value, cls, err, exit_code, text) \
	if (value) { \
		const struct embeng_cqe c = {.status = value, .field = EMBENG_FIELD_DATA}; \
		const struct embeng_rows rows = {.slot = 1}; \
		ck_assert_int_lt(table_command_error(e, "a call", &c), 0); \
		expect_text("table t"); \
		ck_assert_int_lt(rows_command_error(e, "a call", &rows, &c), 0); \
		expect_text("table t, slot accumulators"); \
		ck_assert_int_lt(feature_command_error(e, "a call", &c), 0); \
		if (value != EMBENG_STATUS_HUNG) \
			expect_text("feature f"); \
	}
	EMBENG_STATUS_TABLE(NAMED)
	embeng_close(e);
}
END_TEST

/* The engine's own check of rows, past that of the library: the row is told, also of a list. */
START_TEST(test_rows_are_told)
{
	const struct embeng_cqe c = {.status = EMBENG_STATUS_NUMBER,
				     .field = EMBENG_FIELD_DATA,
				     .element = 5,
				     .value = 0xbf800000};
	struct embeng_rows rows = {.slot = 1, .first = 1};
	struct embeng *e = open_kind(embeng_adagrad(0.5f));
	const uint64_t numbers[] = {9, 9, 3};

	ck_assert_int_eq(rows_command_error(e, "restore", &rows, &c), -ERANGE);
	expect_text("restore: table t, slot accumulators, row 3, column 1: -1 must be 0 or above");
	rows = (struct embeng_rows){.slot = 1, .ids = {.offset = 512, .length = 24}};
	memcpy(e->staging.data + 512, numbers, sizeof(numbers));
	ck_assert_int_eq(rows_command_error(e, "restore", &rows, &c), -ERANGE);
	expect_text("row 3, column 1");
	embeng_close(e);
}
END_TEST

/* A batch that is too much for one command is refused by name, before it is queued. */
START_TEST(test_bytes_of_a_batch)
{
	struct shape shape = {.replicas = 1, .depth = 1, .optimizer = embeng_adagrad(0.5f)};
	struct embeng *e = open_small(&shape);
	const int32_t ids[] = {0, 1, 2};
	const int64_t lengths[] = {3};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_INFERENCE, 0);
	const uint64_t moved = (3 + 1) * 2 * 4;

	ck_assert_uint_gt(e->device->info.command_bytes, moved);
	ck_assert_int_eq(embeng_batch_ragged(b, 0, EMBENG_I32, ids, 3, lengths, 1, NULL, 0), 0);
	e->device->info.command_bytes = moved - 1;
	ck_assert_int_eq(embeng_enqueue(e, b, -1), -ERANGE);
	expect_text("feature f");
	expect_text("31 bytes");
	e->device->info.command_bytes = moved;
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	embeng_close(e);
}
END_TEST

RUN_SUITE("refusals", test_bytes_of_a_batch, test_limits_of_the_device,
	  test_commands_are_refused_by_name, test_rows_are_told)
