// SPDX-License-Identifier: MIT
/*
 * Saves of the rows that changed: what they write, that what stands on them is the same bit for bit as
 * a full save, when a full save is made instead, and that what a kept one needs stays.
 */
#include <math.h>

#include "checkpoint_edit.h"
#include "serving_help.h"
#include "suite.h"

static struct embeng_save_report report;

static int save_delta(struct embeng *e, const char *folder, uint32_t keep)
{
	struct embeng_save_options o = {
		.size = sizeof(o), .flags = EMBENG_SAVE_DELTA, .keep = keep, .report = &report};

	report = (struct embeng_save_report){.size = sizeof(report)};
	return embeng_save(e, folder, &o);
}

static void expect_delta(struct embeng *e, const char *folder, uint32_t delta, uint64_t rows)
{
	help_expect_ok(save_delta(e, folder, 3));
	ck_assert_str_eq(report.why_full, "");
	ck_assert_uint_eq(report.delta, delta);
	ck_assert_uint_eq(report.rows, rows);
}

static void expect_full(struct embeng *e, const char *folder, const char *why)
{
	help_expect_ok(save_delta(e, folder, 3));
	ck_assert_uint_eq(report.delta, 0);
	ck_assert_msg(strstr(report.why_full, why) != NULL, "\"%s\" lacks \"%s\"", report.why_full,
		      why);
}

/* Gives one row of an array other values; another @salt, others. */
static void change_row(struct embeng *e, int table, size_t array, int64_t row, uint32_t salt)
{
	const struct embeng_model *m = embeng_get_model(e);
	size_t dim = help_elements(m, (size_t)table) / help_rows(m, (size_t)table);
	float data[256];

	for (size_t i = 0; i < dim; i++)
		data[i] = help_value((size_t)table, array, (uint64_t)row * dim + i, salt);
	help_expect_ok(
		embeng_rows_write(e, table, help_slot(m, (size_t)table, array), &row, 1, data));
}

/* All arrays of the checkpoint have the bits of the engine's. */
static void expect_same_bits(struct embeng *e, const struct embeng_checkpoint *c)
{
	const struct embeng_model *m = embeng_get_model(e);

	for (size_t t = 0; t < embeng_model_table_count(m); t++) {
		size_t bytes = help_elements(m, t) * sizeof(float), rows = help_rows(m, t);
		float *want = malloc(bytes), *got = malloc(bytes);

		for (size_t a = 0; a <= embeng_model_slot_count(m, t); a++) {
			const char *slot = help_slot(m, t, a);

			help_expect_ok(embeng_rows_read(e, (int)t, slot, NULL, rows, want));
			help_expect_ok(embeng_checkpoint_read(c, (int)t, slot, 0, rows, got));
			ck_assert_msg(!memcmp(want, got, bytes), "table %zu, %s differs", t, slot);
		}
		free(want);
		free(got);
	}
}

static void expect_folder(struct embeng *e, const char *folder, uint32_t deltas)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = help_checkpoint(folder);
	struct embeng *again = open_all(SMALL);

	help_expect_ok(embeng_checkpoint_info(c, &info));
	ck_assert_uint_eq(info.deltas, deltas);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	expect_same_bits(e, c);
	help_expect_ok(embeng_restore(again, folder, NULL));
	expect_same_bits(again, c);
	embeng_close(again);
	embeng_checkpoint_close(c);
}

/* Rows of the first and last place, of slots alone, and of a row that changes again. */
START_TEST(a_chain_is_as_a_full_save)
{
	struct embeng *e = open_all(SMALL);
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	expect_full(e, folder, "the folder has no checkpoint");
	ck_assert_uint_eq(report.rows, 5 + 1 + 400 + 9 + 7 + 300 + 33);
	change_row(e, 2, 0, 0, 2);
	change_row(e, 2, 1, 399, 2);
	change_row(e, 5, 2, 64, 2);
	change_row(e, 5, 0, 63, 2);
	change_row(e, 0, 0, 4, 2);
	expect_delta(e, folder, 1, 5);
	ck_assert_uint_lt(report.bytes, 4096);
	expect_folder(e, folder, 1);
	change_row(e, 2, 0, 0, 3);
	change_row(e, 2, 0, 200, 3);
	expect_delta(e, folder, 2, 2);
	expect_folder(e, folder, 2);
	/* Back to what the base has: a change like any other. */
	change_row(e, 2, 0, 0, 1);
	expect_delta(e, folder, 3, 1);
	expect_folder(e, folder, 3);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Without a change there is one row, so that the checkpoint has a file of its own. */
START_TEST(nothing_changed)
{
	struct embeng *e = open_all(SMALL);
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 2));
	expect_delta(e, folder, 1, 1);
	expect_delta(e, folder, 2, 1);
	expect_folder(e, folder, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static struct embeng *open_allowing(void)
{
	const struct help_table tables[] = {{"none", 500, 1, {0}}, {"u", 3, 2, {0}}};
	struct embeng_engine_config c = {.size = sizeof(c), .non_finite = EMBENG_NON_FINITE_ALLOW};
	struct embeng_model *m = help_model(tables, 2);
	struct embeng *e = NULL;

	help_expect_ok(embeng_model_set_engine(m, &c));
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

/* The bits count: a zero of the other sign is another row, and a NaN is refused or saved. */
START_TEST(bits_count)
{
	const float zero = 0.0f, minus = -0.0f, nan = NAN;
	const int64_t row = 3;
	struct embeng_save_options o = {.size = sizeof(o),
					.flags = EMBENG_SAVE_DELTA | EMBENG_SAVE_NOT_FINITE};
	struct embeng *e = open_allowing();
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_rows_write(e, 0, NULL, &row, 1, &zero));
	help_expect_ok(save_delta(e, folder, 2));
	help_expect_ok(embeng_rows_write(e, 0, NULL, &row, 1, &minus));
	expect_delta(e, folder, 1, 1);
	c = help_checkpoint(folder);
	expect_same_bits(e, c);
	embeng_checkpoint_close(c);
	help_expect_ok(embeng_rows_write(e, 0, NULL, &row, 1, &nan));
	help_expect(save_delta(e, folder, 2), -ERANGE, "row 3, element 0 is nan");
	help_expect_ok(embeng_save(e, folder, &o));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 0), 0);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 1), 1);
	expect_same_bits(e, c);
	embeng_checkpoint_close(c);
	help_expect_ok(embeng_rows_write(e, 0, NULL, &row, 1, &zero));
	expect_delta(e, folder, 3, 1);
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_finite(c, 0), 1);
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static struct embeng *open_hosts(uint32_t hosts, enum embeng_sharding sharding)
{
	const struct help_table t = {"t", 50, 3, embeng_adagrad(0.1f)};
	struct embeng_engine_config c = {.size = sizeof(c), .hosts = hosts, .sharding = sharding};
	struct embeng_model *m = help_model(&t, 1);
	struct embeng *e = NULL;

	help_expect_ok(embeng_model_set_engine(m, &c));
	help_expect_ok(embeng_open(SMALL, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

static void expect_host(const struct embeng_checkpoint *c, const struct embeng_shard *s,
			const float *all)
{
	struct embeng_shard_rows part;
	float data[50 * 3];

	help_expect_ok(embeng_shard_rows(s, 50, &part));
	help_expect_ok(embeng_checkpoint_read_shard(c, 0, NULL, s, 0, (size_t)part.count, data));
	for (int64_t i = 0; i < part.count; i++)
		ck_assert_mem_eq(data + 3 * i, all + 3 * (part.first + i * part.stride),
				 3 * sizeof(float));
}

/* A delta knows no hosts; each host finds its rows in it, whatever their number. */
START_TEST(hosts_share_a_delta)
{
	struct embeng *e = open_hosts(_i ? 4 : 3, _i ? EMBENG_SHARDING_MOD : EMBENG_SHARDING_DIV);
	struct embeng_reshard_options r = {.size = sizeof(r), .hosts = 7};
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float all[50 * 3];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 2));
	for (int64_t row = 0; row < 50; row += 7)
		change_row(e, 0, 0, row, 2);
	expect_delta(e, folder, 1, 8);
	change_row(e, 0, 0, 14, 3);
	change_row(e, 0, 1, 49, 3);
	expect_delta(e, folder, 2, 2);
	c = help_checkpoint(folder);
	expect_same_bits(e, c);
	help_expect_ok(embeng_rows_read(e, 0, NULL, NULL, 50, all));
	for (uint32_t hosts = 1; hosts <= 8; hosts++) {
		for (uint32_t host = 0; host < 2 * hosts; host++) {
			struct embeng_shard s = {.size = sizeof(s),
						 .sharding = host < hosts ? EMBENG_SHARDING_DIV
									  : EMBENG_SHARDING_MOD,
						 .hosts = hosts,
						 .host = host % hosts};

			expect_host(c, &s, all);
		}
	}
	embeng_checkpoint_close(c);
	/* Written again it is whole. */
	help_expect_ok(embeng_checkpoint_reshard(folder, folder, &r, NULL));
	c = help_checkpoint(folder);
	expect_same_bits(e, c);
	embeng_checkpoint_close(c);
	expect_full(e, folder, "another sharding");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- when it is a full save ------------------------------------------------ */

static struct embeng *open_one(int64_t rows, float rate)
{
	const struct help_table t = {"t", rows, 4, embeng_adagrad(rate)};

	return help_open(SMALL, &t, 1);
}

START_TEST(another_model_is_saved_in_full)
{
	struct embeng *e = open_one(100, 0.1f), *larger = open_one(101, 0.1f);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 2));
	help_fill(larger, 1);
	expect_full(larger, folder, "another model");
	c = help_checkpoint(folder);
	expect_same_bits(larger, c);
	embeng_checkpoint_close(c);
	embeng_close(larger);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Another process goes on where one ended: what counts is what is in the folder. */
START_TEST(any_process_may_go_on)
{
	struct embeng *e = open_one(100, 0.1f), *next;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	next = open_one(100, 0.1f);
	help_expect_ok(embeng_restore(next, folder, NULL));
	change_row(next, 0, 0, 9, 2);
	expect_delta(next, folder, 1, 1);
	embeng_close(next);
	folder_remove(folder);
}
END_TEST

START_TEST(large_deltas_are_full_saves)
{
	struct embeng *e = open_one(1000, 0.1f);
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 2));
	for (int64_t row = 0; row < 700; row++)
		change_row(e, 0, 0, row, 2);
	expect_delta(e, folder, 1, 700);
	for (int64_t row = 300; row < 1000; row++)
		change_row(e, 0, 0, row, 3);
	expect_full(e, folder, "the deltas would be larger than the full checkpoint");
	ck_assert_uint_eq(report.rows, 1000);
	change_row(e, 0, 0, 1, 4);
	expect_delta(e, folder, 1, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_chain_has_an_end)
{
	struct embeng *e = open_one(10000, 0.1f);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 1));
	for (uint32_t k = 1; k <= DELTAS_MAX; k++) {
		change_row(e, 0, 0, 5 * k, k);
		expect_delta(e, folder, k, 1);
	}
	c = help_checkpoint(folder);
	expect_same_bits(e, c);
	embeng_checkpoint_close(c);
	expect_full(e, folder, "as many deltas as are allowed");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* The name of a file of the current checkpoint: its base's first one, or its newest. */
static void find_file(const char *folder, bool newest, char name[SHARD_NAME_SIZE])
{
	static const char key[] = "\"name\": \"embeng-";
	static char text[EDIT_BYTES];
	char *at, *next;

	edit_read(folder, INDEX_NAME, text);
	at = strstr(strstr(text, "\"files\""), key);
	while (newest && (next = strstr(at + 1, key)))
		at = next;
	at += strlen("\"name\": \"");
	snprintf(name, SHARD_NAME_SIZE, "%.*s", (int)strcspn(at, "\""), at);
}

static void flip_byte(const char *folder, const char *name, size_t at)
{
	static char text[EDIT_BYTES];
	size_t length = edit_read(folder, name, text);

	text[at < length ? at : length - 1] ^= 1;
	edit_write(folder, name, text, length);
}

/* A delta on top of what is broken would be lost with it. */
START_TEST(a_broken_base_is_replaced)
{
	struct embeng *e = open_one(100, 0.1f);
	char folder[HELP_PATH], name[SHARD_NAME_SIZE], *path;
	struct embeng_checkpoint *c;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 1));
	change_row(e, 0, 0, 9, 2);
	expect_delta(e, folder, 1, 1);
	find_file(folder, _i % 2, name);
	path = file_path(folder, name);
	if (_i < 2)
		flip_byte(folder, name, EDIT_BYTES);
	else
		ck_assert_int_eq(unlink(path), 0);
	free(path);
	change_row(e, 0, 0, 10, 2);
	expect_full(e, folder, name);
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	expect_same_bits(e, c);
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- what stays ------------------------------------------------------------ */

static void expect_row(const char *folder, size_t back, uint32_t salt)
{
	float row[4];

	help_read_earlier(folder, back, 9, row);
	for (size_t i = 0; i < 4; i++)
		ck_assert_float_eq(row[i], help_value(0, 0, 36 + i, salt));
}

/* Deltas beside full saves, keeping 1, 2 and 3: each that is kept opens, and nothing else is there. */
START_TEST(a_kept_delta_keeps_its_base)
{
	static const char full[] = ".XXX.X..";
	const uint32_t keep = 1 + (uint32_t)_i;
	static char names[HELP_FILES][256];
	struct embeng *e = open_one(100, 0.1f);
	struct embeng_save_options o = {.size = sizeof(o), .keep = keep};
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	for (uint32_t k = 0; full[k]; k++) {
		change_row(e, 0, 0, 9, k + 2);
		if (full[k] == 'X')
			help_expect_ok(save_delta(e, folder, keep));
		else
			help_expect_ok(embeng_save(e, folder, &o));
		for (size_t back = 0; back < keep && back <= k + 1; back++)
			expect_row(folder, back, k + 2 - (uint32_t)back);
	}
	/* Two full ones at the end, and before them two on a base, of which keeping 3 has one. */
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), keep == 1   ? 3
								   : keep == 2 ? 5
									       : 8);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- what is refused ------------------------------------------------------- */

START_TEST(flags_and_reports_are_checked)
{
	struct embeng_save_report small = {.size = sizeof(small) - 1};
	struct embeng_save_options o = {.size = sizeof(o), .flags = 1u << 2};
	struct embeng *e = open_one(10, 0.1f);
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect(embeng_save(e, folder, &o), -EINVAL, "flags 0x4, known are 0x3");
	o.flags = 0;
	o.report = &small;
	help_expect(embeng_save(e, folder, &o), -EINVAL, "the report's size is");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

struct edit {
	const char *old, *new;
	const char *text;
};

static const struct edit edits[] = {
	{"\"delta\": 1", "\"delta\": 2", "has delta 2, expected is 1"},
	{"\"delta\": 1", "\"delta\": 0", "\"delta\" is not a whole number"},
	{"\"delta\": 1", "\"delta\": 65", "\"delta\" is not a whole number"},
	{"\"delta\": 1,", "", "\"first_row\" is not a whole number"},
	{"\"delta\": 2,", "\"delta\": 1,", "has delta 1, expected is 2"},
	{"\"delta\": 2,", "\"delta\": 3,", "has delta 3, expected is 2"},
	{"\"delta\": 1,\n      \"table\": 0", "\"delta\": 1,\n      \"table\": 2",
	 "rows of table 2, which are not there"},
	{"\"delta\": 1,\n      \"table\": 0,\n      \"rows\": 2",
	 "\"delta\": 1,\n      \"table\": 0,\n      \"rows\": 0", "\"rows\" is not a whole number"},
	{"\"delta\": 1,\n      \"table\": 0,\n      \"rows\": 2",
	 "\"delta\": 1,\n      \"table\": 0,\n      \"rows\": 601",
	 "601 rows of table 0, which are not there"},
	{"\"delta\": 1,\n      \"table\": 0,\n      \"rows\": 2",
	 "\"delta\": 1,\n      \"table\": 0,\n      \"rows\": 3", "the index says"},
	{"\"t/row_numbers\"", "\"t/row_number\"", "\"t/row_numbers\" is not a whole number"},
	{"\"delta\": 1,\n      \"table\": 1", "\"delta\": 1,\n      \"table\": 0",
	 "has table 0 behind table 0 of the same delta"},
};

/* A base of two tables, a delta of both and one of the second. */
static void save_two_deltas(const char *folder)
{
	const struct help_table tables[] = {{"t", 600, 2, embeng_adagrad(0.1f)}, {"u", 3, 2, {0}}};
	struct embeng *e = help_open(SMALL, tables, 2);

	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 1));
	change_row(e, 0, 0, 0, 2);
	change_row(e, 0, 0, 599, 2);
	change_row(e, 1, 0, 2, 2);
	help_expect_ok(save_delta(e, folder, 1));
	ck_assert_uint_eq(report.delta, 1);
	change_row(e, 1, 0, 1, 3);
	help_expect_ok(save_delta(e, folder, 1));
	ck_assert_uint_eq(report.delta, 2);
	embeng_close(e);
}

START_TEST(indices_are_checked)
{
	static char text[EDIT_BYTES];
	char folder[HELP_PATH];

	folder_new(folder);
	save_two_deltas(folder);
	ck_assert_int_eq(edit_open(folder), 0);
	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, edits[_i].old, edits[_i].new);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -EBADMSG, edits[_i].text);
	folder_remove(folder);
}
END_TEST

/* An older library refuses it, and so does this one what it does not know. */
START_TEST(it_is_required)
{
	static char text[EDIT_BYTES];
	char folder[HELP_PATH];

	folder_new(folder);
	save_two_deltas(folder);
	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, "\"delta\",\n", "\"deltas\",\n");
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
	help_expect(edit_open(folder), -ENOTSUP, "requires \"deltas\"");
	folder_remove(folder);
}
END_TEST

/* Where a tensor of the newest delta lies. */
static size_t place_of(const char *text, const char *tensor)
{
	const char *at = NULL;

	for (const char *next = text; (next = strstr(next, tensor)); next++)
		at = next;
	ck_assert_ptr_nonnull(at);
	return (size_t)strtoull(at + strlen(tensor), NULL, 10);
}

/* Gives the newest delta's only row another number, with right checksums. */
static void set_row_number(const char *folder, int64_t number)
{
	static char text[EDIT_BYTES], shard[EDIT_BYTES];
	char name[SHARD_NAME_SIZE];
	size_t length;

	find_file(folder, true, name);
	length = edit_read(folder, name, shard);
	edit_read(folder, INDEX_NAME, text);
	memcpy(shard + place_of(text, "\"u/row_numbers\": "), &number, sizeof(number));
	edit_seal_shard(text, name, shard, length);
	edit_write(folder, name, shard, length);
	edit_seal_chunks(text);
	edit_seal(text);
	edit_write(folder, INDEX_NAME, text, strlen(text));
}

START_TEST(row_numbers_are_checked)
{
	static const int64_t bad[] = {-1, 3, INT64_MAX, INT64_MIN};
	char folder[HELP_PATH];

	folder_new(folder);
	save_two_deltas(folder);
	set_row_number(folder, 2);
	ck_assert_int_eq(edit_open(folder), 0);
	for (size_t i = 0; i < 4; i++) {
		set_row_number(folder, bad[i]);
		help_expect(edit_open(folder), -EBADMSG, "row number 0 of table u is");
	}
	folder_remove(folder);
}
END_TEST

/* A byte of a delta: of its header and row numbers when it is opened, of its rows when read. */
START_TEST(broken_deltas_are_found)
{
	struct embeng_checkpoint *c = NULL;
	char folder[HELP_PATH], name[SHARD_NAME_SIZE];
	int ret;

	folder_new(folder);
	save_two_deltas(folder);
	find_file(folder, true, name);
	flip_byte(folder, name, (size_t)_i * 40);
	ret = embeng_checkpoint_open(folder, &c, NULL);
	if (!ret) {
		ret = embeng_checkpoint_verify(c, NULL, NULL);
		embeng_checkpoint_close(c);
	}
	help_expect(ret, -EBADMSG, name);
	folder_remove(folder);
}
END_TEST

/* Lookups of a checkpoint and of the engine, checked, unchecked and one by one. */
START_TEST(lookups_see_deltas)
{
	static const uint32_t flags[] = {0, EMBENG_SERVING_VERIFY, EMBENG_SERVING_TRUST,
					 EMBENG_SERVING_COPY};
	const int64_t ids[] = {9, 10, 99, 0, 50}, splits[] = {0, 1, 2, 3, 4, 5};
	struct embeng_serving_input in = ragged_input(0, ids, splits, 6);
	struct embeng *e = open_one(100, 0.1f);
	char folder[HELP_PATH];
	float want[5 * 4], out[5 * 4];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save_delta(e, folder, 2));
	change_row(e, 0, 0, 9, 2);
	change_row(e, 0, 0, 99, 2);
	expect_delta(e, folder, 1, 2);
	change_row(e, 0, 0, 9, 3);
	change_row(e, 0, 0, 0, 3);
	expect_delta(e, folder, 2, 2);
	help_expect_ok(embeng_rows_read(e, 0, NULL, ids, 5, want));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct embeng_serving *s = NULL;

		help_expect_ok(embeng_serving_open(folder, NULL, flags[i], &s, NULL));
		in.out = out;
		in.out_elements = 20;
		help_expect_ok(embeng_serving_lookup(s, &in, 1));
		ck_assert_mem_eq(out, want, sizeof(want));
		embeng_serving_close(s);
	}
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_test(tcase, a_chain_is_as_a_full_save);
	tcase_add_test(tcase, nothing_changed);
	tcase_add_test(tcase, bits_count);
	tcase_add_loop_test(tcase, hosts_share_a_delta, 0, 2);
	tcase_add_test(tcase, another_model_is_saved_in_full);
	tcase_add_test(tcase, any_process_may_go_on);
	tcase_add_test(tcase, large_deltas_are_full_saves);
	tcase_add_test(tcase, a_chain_has_an_end);
	tcase_add_loop_test(tcase, a_broken_base_is_replaced, 0, 4);
	tcase_add_loop_test(tcase, a_kept_delta_keeps_its_base, 0, 3);
	tcase_add_test(tcase, flags_and_reports_are_checked);
	tcase_add_loop_test(tcase, indices_are_checked, 0, (int)(sizeof(edits) / sizeof(*edits)));
	tcase_add_test(tcase, it_is_required);
	tcase_add_test(tcase, row_numbers_are_checked);
	tcase_add_loop_test(tcase, broken_deltas_are_found, 0, 8);
	tcase_add_test(tcase, lookups_see_deltas);
}

int main(void)
{
	return suite_main("delta", add);
}
