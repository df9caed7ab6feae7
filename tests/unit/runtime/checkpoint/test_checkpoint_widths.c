// SPDX-License-Identifier: MIT
/*
 * Slots that have one number a row: rows of an engine, of its shards and of checkpoints, whole, in
 * parts and as deltas, beside tables whose slots are wide.
 */
#include "checkpoint_edit.h"
#include "checkpoint_help.h"
#include "suite.h"

#define TABLES 3
#define ROWS 37
#define DIM 5

static const struct help_table *tables_of_widths(void)
{
	static struct help_table tables[TABLES];

	tables[0] = (struct help_table){"rowwise", ROWS, DIM, embeng_rowwise_adagrad(0.5f)};
	tables[1] = (struct help_table){"wide", 11, 3, embeng_adam(0.5f)};
	tables[2] = (struct help_table){"partial", ROWS, DIM, embeng_partial_rowwise_adam(0.5f)};
	return tables;
}

static struct embeng *open_widths(uint32_t hosts, enum embeng_sharding sharding)
{
	struct embeng_model *m = help_model(tables_of_widths(), TABLES);
	struct embeng_engine_config engine = {
		.size = sizeof(engine), .hosts = hosts, .sharding = sharding};
	struct embeng *e = NULL;

	help_expect_ok(embeng_model_set_engine(m, &engine));
	help_expect_ok(embeng_open("soft:cores=2,memory=1M", m, &e, NULL));
	embeng_model_free(m);
	return e;
}

static void save(struct embeng *e, const char *folder, uint32_t flags, uint64_t shard_bytes)
{
	struct embeng_save_options o = {
		.size = sizeof(o), .flags = flags, .shard_bytes = shard_bytes, .keep = 3};

	help_expect_ok(embeng_save(e, folder, &o));
}

/* Restored elsewhere, sharded otherwise, and read row by row. */
static void expect_saved(const char *folder, uint32_t salt)
{
	struct embeng_checkpoint *c = help_checkpoint(folder);
	struct embeng *again = open_widths(2, EMBENG_SHARDING_MOD);
	float one[DIM], want;

	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, salt);
	for (int64_t row = 0; row < ROWS; row++) {
		want = help_value(0, 1, (uint64_t)row, salt);
		help_expect_ok(embeng_checkpoint_read(c, 0, "accumulators", row, 1, one));
		ck_assert(one[0] == want);
	}
	help_expect_ok(embeng_restore(again, folder, NULL));
	help_expect_tables(again, salt);
	embeng_close(again);
	embeng_checkpoint_close(c);
}

START_TEST(saved_and_restored)
{
	static const struct {
		uint32_t hosts;
		enum embeng_sharding sharding;
		uint64_t shard_bytes;
	} cases[] = {
		{1, EMBENG_SHARDING_DIV, 0},
		{1, EMBENG_SHARDING_DIV, 100},
		{3, EMBENG_SHARDING_DIV, 0},
		{4, EMBENG_SHARDING_MOD, 150},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct embeng *e = open_widths(cases[i].hosts, cases[i].sharding);
		char folder[HELP_PATH];

		folder_new(folder);
		help_fill(e, 1);
		help_expect_tables(e, 1);
		save(e, folder, 0, cases[i].shard_bytes);
		expect_saved(folder, 1);
		embeng_close(e);
		folder_remove(folder);
	}
}
END_TEST

/* The rows of a delta are those of which a slot of one number changed, too. */
START_TEST(saved_as_deltas)
{
	struct embeng_save_report report = {.size = sizeof(report)};
	struct embeng_save_options o = {
		.size = sizeof(o), .flags = EMBENG_SAVE_DELTA, .keep = 3, .report = &report};
	struct embeng *e = open_widths(1, EMBENG_SHARDING_DIV);
	char folder[HELP_PATH];
	const int64_t rows[] = {36, 4};
	float two[] = {help_value(2, 2, 36, 1) + 1, help_value(2, 2, 4, 1) + 1};
	struct embeng_checkpoint *c;
	float got[ROWS];

	folder_new(folder);
	help_fill(e, 1);
	save(e, folder, 0, 0);
	help_expect_ok(embeng_rows_write(e, 2, "velocities", rows, 2, two));
	help_expect_ok(embeng_save(e, folder, &o));
	ck_assert_str_eq(report.why_full, "");
	ck_assert_uint_eq(report.rows, 2);
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_ok(embeng_checkpoint_read(c, 2, "velocities", 0, ROWS, got));
	for (uint64_t row = 0; row < ROWS; row++)
		ck_assert(got[row] == help_value(2, 2, row, 1) + (row == 36 || row == 4 ? 1 : 0));
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Writes that are refused name the row, whose only column is 0. */
START_TEST(refused_numbers_are_named)
{
	struct embeng *e = open_widths(1, EMBENG_SHARDING_DIV);
	const int64_t rows[] = {3, 9};
	const float bad[] = {1, -2};

	help_fill(e, 1);
	help_expect(embeng_rows_write(e, 0, "accumulators", rows, 2, bad), -ERANGE,
		    "row 9, column 0: -2");
	help_expect_tables(e, 1);
	embeng_close(e);
}
END_TEST

/* A restore copies into a mapped slot, which stays where it is. */
START_TEST(mapped)
{
	struct embeng *e = open_widths(1, EMBENG_SHARDING_DIV);
	const float zeros[ROWS] = {0};
	float *sums, *again, *rows;
	char folder[HELP_PATH];
	int64_t stride = 0;

	folder_new(folder);
	help_fill(e, 1);
	save(e, folder, 0, 0);
	help_expect_ok(embeng_table_map(e, 0, "accumulators", &sums, &stride));
	ck_assert_int_eq(stride, 1);
	help_expect_ok(embeng_table_map(e, 0, NULL, &rows, &stride));
	ck_assert_int_eq(stride, DIM);
	help_compare(sums, ROWS, 0, 1, 1);
	help_expect_ok(embeng_rows_write(e, 0, "accumulators", NULL, ROWS, zeros));
	ck_assert(!memcmp(sums, zeros, sizeof(zeros)));
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_compare(sums, ROWS, 0, 1, 1);
	help_compare(rows, (size_t)ROWS * DIM, 0, 0, 1);
	help_expect_ok(embeng_table_map(e, 0, "accumulators", &again, &stride));
	ck_assert_ptr_eq(again, sums);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static int fill_by_row(void *arg, const struct embeng_shard_part *part, float *data)
{
	ck_assert_int_eq(part->dim, *(int64_t *)arg);
	for (int64_t i = 0; i < part->rows.count; i++)
		for (int64_t c = 0; c < part->dim; c++)
			*data++ = (float)(part->rows.first + i * part->rows.stride);
	return 0;
}

START_TEST(shards_of_rows)
{
	struct embeng *e = open_widths(3, EMBENG_SHARDING_MOD);
	const struct embeng_shard shard = {
		.size = sizeof(shard), .sharding = EMBENG_SHARDING_MOD, .hosts = 3, .host = 2};
	int64_t width = 1;
	float got[ROWS], start[ROWS];

	help_fill(e, 1);
	help_expect_ok(embeng_shard_initialize(e, 0, "accumulators", fill_by_row, &width));
	help_expect_ok(embeng_shard_read(e, 0, "accumulators", &shard, 1, 4, got));
	for (int i = 0; i < 4; i++)
		ck_assert(got[i] == (float)(2 + 3 * (i + 1)));
	help_expect_ok(embeng_shard_write(e, 2, "velocities", &shard, 1, 4, got));
	help_expect_ok(embeng_rows_read(e, 2, "velocities", NULL, ROWS, got));
	for (int row = 0; row < ROWS; row++)
		ck_assert(got[row] == (row % 3 == 2 && row > 2 && row < 15
					       ? (float)row
					       : help_value(2, 2, (uint64_t)row, 1)));
	help_expect_ok(
		embeng_shard_start(embeng_get_model(e), 0, "accumulators", &shard, 0, 12, start));
	for (int i = 0; i < 12; i++)
		ck_assert(start[i] == 0.0f);
	help_expect_array(e, 0, 0, 1);
	help_expect_array(e, 2, 1, 1);
	embeng_close(e);
}
END_TEST

static void index_edit(const char *folder, const char *from, const char *to)
{
	static char text[EDIT_BYTES];

	edit_read(folder, "index.json", text);
	edit_replace(text, from, to);
	edit_seal(text);
	edit_write(folder, "index.json", text, strlen(text));
}

/* An index that says another width, or none, is not of these slots. */
START_TEST(other_widths_are_refused)
{
	static const struct {
		const char *from, *to, *words;
		int code;
	} cases[] = {
		{"\"slot_widths\": [\n        1", "\"slot_widths\": [\n        5",
		 "accumulators has 5 numbers for each row", -ENOTSUP},
		{"\"slot_widths\"", "\"other_widths\"", "\"slot_widths\" is missing", -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct embeng *e = open_widths(1, EMBENG_SHARDING_DIV);
		struct embeng_error error = {.size = sizeof(error)};
		struct embeng_checkpoint *c = NULL;
		char folder[HELP_PATH];

		folder_new(folder);
		save(e, folder, 0, 0);
		index_edit(folder, cases[i].from, cases[i].to);
		ck_assert_int_eq(embeng_checkpoint_open(folder, &c, &error), cases[i].code);
		ck_assert_msg(strstr(error.text, cases[i].words) != NULL, "%s", error.text);
		embeng_close(e);
		folder_remove(folder);
	}
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_test(tcase, saved_and_restored);
	tcase_add_test(tcase, saved_as_deltas);
	tcase_add_test(tcase, refused_numbers_are_named);
	tcase_add_test(tcase, mapped);
	tcase_add_test(tcase, shards_of_rows);
	tcase_add_test(tcase, other_widths_are_refused);
}

int main(void)
{
	return suite_main("checkpoint_widths", add);
}
