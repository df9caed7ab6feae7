// SPDX-License-Identifier: MIT
/* Restores of a part: tables that grew or shrank, tables of other names, and nothing at all. */
#include "checkpoint_edit.h"
#include "suite.h"

#define DIM 4
#define SAVED 64

static struct embeng *open_table(const char *device, const char *name, int64_t rows, int64_t dim)
{
	const struct help_table t = {name, rows, dim, embeng_adam(0.1f)};

	return help_open(device, &t, 1);
}

static void save_table(const char *folder, const char *device, int64_t rows, int64_t dim,
		       uint64_t shard_bytes)
{
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = shard_bytes};
	struct embeng *e = open_table(device, "t", rows, dim);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
}

static int restore_part(struct embeng *e, const char *folder, uint32_t flags,
			const struct embeng_restore_name *names, size_t count,
			struct embeng_restore_report *report)
{
	struct embeng_restore_options o = {.size = sizeof(o),
					   .flags = flags,
					   .names = names,
					   .name_count = count,
					   .report = report};

	if (report)
		*report = (struct embeng_restore_report){.size = sizeof(*report)};
	return embeng_restore(e, folder, &o);
}

/* The first @rows rows of an array are those of help_fill(@salt) of table @like, the others not. */
static void expect_first_rows(struct embeng *e, size_t table, size_t like, size_t rows,
			      uint32_t salt, uint32_t rest)
{
	const struct embeng_model *m = embeng_get_model(e);
	size_t elements = help_elements(m, table), all = help_rows(m, table);
	size_t first = rows * (elements / all);
	float *data = malloc(elements * sizeof(*data));

	for (size_t a = 0; a <= embeng_model_slot_count(m, table); a++) {
		help_expect_ok(
			embeng_rows_read(e, (int)table, help_slot(m, table, a), NULL, all, data));
		help_compare(data, first, like, a, salt);
		for (size_t i = first; i < elements; i++)
			ck_assert_float_eq(data[i], help_value(table, a, i, rest));
	}
	free(data);
}

static const int64_t other_rows[] = {1, 2, 63, 65, 127, 128, 1000};
static const uint64_t shard_sizes[] = {0, 200, 4 * DIM * 3};

#define ROWS_COUNT (sizeof(other_rows) / sizeof(*other_rows))
#define SIZES_COUNT (sizeof(shard_sizes) / sizeof(*shard_sizes))

START_TEST(rows_that_both_have)
{
	int64_t rows = other_rows[_i % (int)ROWS_COUNT];
	uint64_t common = rows < SAVED ? (uint64_t)rows : SAVED;
	struct embeng *e = open_table(SMALL, "t", rows, DIM);
	struct embeng_restore_report report;
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, SMALL, SAVED, DIM, shard_sizes[_i / (int)ROWS_COUNT]);
	help_fill(e, 2);
	help_expect_ok(restore_part(e, folder, EMBENG_RESTORE_OTHER_SHAPES, NULL, 0, &report));
	expect_first_rows(e, 0, 0, common, 1, 2);
	ck_assert_uint_eq(report.tables, 1);
	ck_assert_uint_eq(report.tables_left, 0);
	ck_assert_uint_eq(report.slots, 2);
	ck_assert_uint_eq(report.slots_left, 0);
	ck_assert_uint_eq(report.rows, common);
	ck_assert_uint_eq(report.rows_left, (uint64_t)rows - common);
	ck_assert_uint_eq(report.rows_unused, SAVED - common);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* From the shards of hosts, whose rows lie side by side or in turn. */
START_TEST(rows_of_hosts)
{
	const struct embeng_reshard_options o = {.size = sizeof(o),
						 .hosts = 3 + 4 * ((uint32_t)_i / 2),
						 .sharding = _i % 2 ? EMBENG_SHARDING_MOD
								    : EMBENG_SHARDING_DIV};
	struct embeng *more = open_table(SMALL, "t", 100, DIM);
	struct embeng *fewer = open_table(SMALL, "t", 10, DIM);
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, SMALL, SAVED, DIM, 0);
	help_expect_ok(embeng_checkpoint_reshard(folder, folder, &o, NULL));
	help_fill(more, 2);
	help_fill(fewer, 2);
	help_expect_ok(restore_part(more, folder, EMBENG_RESTORE_OTHER_SHAPES, NULL, 0, NULL));
	help_expect_ok(restore_part(fewer, folder, EMBENG_RESTORE_OTHER_SHAPES, NULL, 0, NULL));
	expect_first_rows(more, 0, 0, SAVED, 1, 2);
	expect_first_rows(fewer, 0, 0, 10, 1, 2);
	embeng_close(more);
	embeng_close(fewer);
	folder_remove(folder);
}
END_TEST

/* With no room for copies, rows that stay are not touched at all. */
START_TEST(rows_in_place)
{
	const int64_t saved = _i ? 5000 : 2000;
	struct embeng *e = open_table("soft:cores=2,memory=5M", "t", 2500, 130);
	struct embeng_restore_report report;
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, "soft:cores=1,memory=64M", saved, 130, 300000);
	help_fill(e, 2);
	help_expect_ok(restore_part(e, folder, EMBENG_RESTORE_OTHER_SHAPES, NULL, 0, &report));
	expect_first_rows(e, 0, 0, _i ? 2500 : 2000, 1, 2);
	ck_assert_uint_eq(report.rows, _i ? 2500 : 2000);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A model that is fresh has what its initializers gave in the rows beyond. */
START_TEST(fresh_rows_keep_their_start)
{
	struct embeng *e = open_table(SMALL, "t", 70, DIM),
		      *fresh = open_table(SMALL, "t", 70, DIM);
	float got[70 * DIM], want[70 * DIM];
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, SMALL, SAVED, DIM, 0);
	help_expect_ok(restore_part(e, folder, EMBENG_RESTORE_OTHER_SHAPES, NULL, 0, NULL));
	for (size_t a = 0; a < 3; a++) {
		const char *slot = help_slot(embeng_get_model(e), 0, a);

		help_expect_ok(embeng_rows_read(e, 0, slot, NULL, 70, got));
		help_expect_ok(embeng_rows_read(fresh, 0, slot, NULL, 70, want));
		ck_assert_mem_eq(got + SAVED * DIM, want + SAVED * DIM, 6 * DIM * sizeof(float));
		help_compare(got, SAVED * DIM, 0, a, 1);
	}
	embeng_close(e);
	embeng_close(fresh);
	folder_remove(folder);
}
END_TEST

START_TEST(other_shapes_are_named)
{
	struct embeng *rows = open_table(SMALL, "t", 65, DIM);
	struct embeng *dim = open_table(SMALL, "t", SAVED, DIM + 1);
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, SMALL, SAVED, DIM, 0);
	help_fill(rows, 2);
	help_fill(dim, 2);
	help_expect(embeng_restore(rows, folder, NULL), -EINVAL, "table t is 65 x 4");
	expect_text("it is 64 x 4; EMBENG_RESTORE_OTHER_SHAPES restores");
	help_expect(restore_part(dim, folder, EMBENG_RESTORE_OTHER_SHAPES, NULL, 0, NULL), -EINVAL,
		    "table t is 64 x 5");
	expect_text("another dim cannot be restored");
	help_expect_tables(rows, 2);
	help_expect_tables(dim, 2);
	embeng_close(rows);
	embeng_close(dim);
	folder_remove(folder);
}
END_TEST

/* -- names --------------------------------------------------------------- */

static const struct help_table three[] = {{"a", 6, 2, {0}}, {"b", 6, 2, {0}}, {"c", 6, 2, {0}}};

static struct embeng *save_three(const char *folder)
{
	struct embeng *e = help_open(SMALL, three, 3);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_fill(e, 2);
	return e;
}

/* @from is the table of the checkpoint that each table has after a restore; -1: as it was. */
START_TEST(tables_by_other_names)
{
	static const struct {
		struct embeng_restore_name names[3];
		size_t count;
		int from[3];
		uint32_t flags;
	} maps[] = {
		{{{"a", "b"}, {"b", "a"}}, 2, {1, 0, 2}, 0},
		{{{"a", "b"}, {"b", "c"}, {"c", "a"}}, 3, {2, 0, 1}, 0},
		{{{"a", "b"}, {"a", "c"}, {"a", "a"}}, 3, {0, 0, 0}, 0},
		{{{"a", "a"}, {"a", "c"}}, 2, {0, 1, 0}, 0},
		{{{NULL, "b"}}, 1, {0, -1, 2}, 0},
		{{{"b", NULL}}, 1, {0, -1, 2}, 0},
		{{{"b", NULL}, {"b", "c"}}, 2, {0, -1, 1}, 0},
		{{{"c", "b"}}, 1, {0, 2, -1}, EMBENG_RESTORE_MISSING_TABLES},
		{{{"a", NULL}, {NULL, "b"}, {"c", NULL}}, 3, {-1, -1, -1}, 0},
	};
	char folder[HELP_PATH];
	struct embeng *e;

	folder_new(folder);
	e = save_three(folder);
	for (size_t k = 0; k < sizeof(maps) / sizeof(*maps); k++) {
		struct embeng_restore_report report;
		size_t tables = 0;

		help_fill(e, 2);
		help_expect_ok(restore_part(e, folder, maps[k].flags, maps[k].names, maps[k].count,
					    &report));
		for (size_t t = 0; t < 3; t++) {
			int from = maps[k].from[t];

			expect_first_rows(e, t, from < 0 ? t : (size_t)from, from < 0 ? 0 : 6, 1,
					  2);
			tables += from >= 0;
		}
		ck_assert_uint_eq(report.tables, tables);
		ck_assert_uint_eq(report.tables_left, 3 - tables);
		ck_assert_uint_eq(report.rows, 6 * tables);
	}
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(wrong_names_are_refused)
{
	static const struct {
		struct embeng_restore_name names[2];
		int ret;
		const char *text;
	} maps[] = {
		{{{"a", "b"}, {"x", "c"}}, -ENOENT, "names[1]: "},
		{{{"a", "x"}, {"b", "b"}}, -ENOENT, "the model has no table x, it has a, b, c"},
		{{{"a", "b"}, {"c", "b"}}, -EINVAL, "names[0] and names[1] both go into table b"},
		{{{"a", "b"}, {NULL, "b"}}, -EINVAL, "both go into table b"},
		{{{NULL, NULL}, {"b", "b"}}, -EINVAL, "names[0]: from and to are both NULL"},
		{{{"a", "b"}, {"b", "b"}}, -EINVAL, "both go into table b"},
		{{{"c", "b"}, {"a", "a"}}, -ENOENT, "table c is not in"},
	};
	char folder[HELP_PATH];
	struct embeng *e;

	folder_new(folder);
	e = save_three(folder);
	for (size_t k = 0; k < sizeof(maps) / sizeof(*maps); k++) {
		help_expect(restore_part(e, folder, 0, maps[k].names, 2, NULL), maps[k].ret,
			    maps[k].text);
		help_expect_tables(e, 2);
	}
	help_expect(restore_part(e, folder, 0, NULL, 1, NULL), -EINVAL, "name_count is 1");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Tables of other names may have other rows, too. */
START_TEST(a_renamed_table_that_grew)
{
	static const struct embeng_restore_name name = {"t", "new"};
	struct embeng *e = open_table(SMALL, "new", 80, DIM);
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, SMALL, SAVED, DIM, 0);
	help_fill(e, 2);
	help_expect(restore_part(e, folder, 0, &name, 1, NULL), -EINVAL, "table new is 80 x 4");
	help_expect_ok(restore_part(e, folder, EMBENG_RESTORE_OTHER_SHAPES, &name, 1, NULL));
	expect_first_rows(e, 0, 0, SAVED, 1, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Success means that something was restored. */
START_TEST(nothing_is_no_success)
{
	const uint32_t all = EMBENG_RESTORE_MISSING_TABLES | EMBENG_RESTORE_MISSING_SLOTS |
			     EMBENG_RESTORE_OTHER_SHAPES;
	struct embeng_restore_report report = {.size = sizeof(report)}, untouched = report;
	struct embeng *e = open_table(SMALL, "u", SAVED, DIM);
	char folder[HELP_PATH];

	folder_new(folder);
	save_table(folder, SMALL, SAVED, DIM, 0);
	help_fill(e, 2);
	help_expect(restore_part(e, folder, all, NULL, 0, &report), -ENOENT, "nothing to restore");
	expect_text("the model has u");
	expect_text("which has t");
	ck_assert_mem_eq(&report, &untouched, sizeof(report));
	help_expect_tables(e, 2);
	report.size = 8;
	help_expect(embeng_restore(e, folder,
				   &(struct embeng_restore_options){
					   .size = sizeof(struct embeng_restore_options),
					   .report = &report}),
		    -EINVAL, "the report's size is 8");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, rows_that_both_have, 0, ROWS_COUNT * SIZES_COUNT);
	tcase_add_loop_test(tcase, rows_of_hosts, 0, 4);
	tcase_add_loop_test(tcase, rows_in_place, 0, 2);
	tcase_add_test(tcase, fresh_rows_keep_their_start);
	tcase_add_test(tcase, other_shapes_are_named);
	tcase_add_test(tcase, tables_by_other_names);
	tcase_add_test(tcase, wrong_names_are_refused);
	tcase_add_test(tcase, a_renamed_table_that_grew);
	tcase_add_test(tcase, nothing_is_no_success);
}

int main(void)
{
	return suite_main("restore-partial", add);
}
