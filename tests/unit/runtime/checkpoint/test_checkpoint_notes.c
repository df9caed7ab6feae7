// SPDX-License-Identifier: MIT
/* Restores of numbers that the model cannot have, and what the report says of those that differ. */
#include <math.h>

#include "checkpoint_edit.h"
#include "suite.h"

#define ROWS 2500
#define DIM 130

/* Room for both of two copies, and for one. */
static const char *const devices[] = {"soft:cores=2,memory=64M", "soft:cores=2,memory=5M"};

static struct embeng *open_table(const char *device, struct embeng_optimizer optimizer,
				 enum embeng_non_finite policy)
{
	const struct help_table t = {"t", ROWS, DIM, optimizer};
	const struct embeng_engine_config engine = {.size = sizeof(engine), .non_finite = policy};
	struct embeng_model *m = help_model(&t, 1);
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_set_engine(m, &engine), 0);
	help_expect_ok(embeng_open(device, m, &e, NULL));
	embeng_model_free(m);
	return e;
}

static void save_with(const char *folder, size_t array, int64_t row, size_t column, float value)
{
	struct embeng *e = open_table(devices[0], embeng_adam(0.1f), EMBENG_NON_FINITE_ALLOW);
	const char *slot = help_slot(embeng_get_model(e), 0, array);
	struct embeng_save_options o = {.size = sizeof(o), .flags = EMBENG_SAVE_NOT_FINITE};
	float data[DIM];

	help_fill(e, 1);
	help_expect_ok(embeng_rows_read(e, 0, slot, &row, 1, data));
	data[column] = value;
	help_expect_ok(embeng_rows_write(e, 0, slot, &row, 1, data));
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
}

static int restore_report(struct embeng *e, const char *folder, struct embeng_restore_report *out)
{
	const struct embeng_restore_options o = {.size = sizeof(o), .report = out};

	*out = (struct embeng_restore_report){.size = sizeof(*out)};
	return embeng_restore(e, folder, &o);
}

static const struct {
	size_t array;
	int64_t row;
	size_t column;
	float value;
	const char *place, *text;
} bad[] = {
	{0, 0, 0, NAN, "table t, parameters", "row 0, column 0"},
	{0, ROWS - 1, DIM - 1, INFINITY, "table t, parameters", "row 2499, column 129"},
	{1, 1250, 7, -INFINITY, "table t, slot momenta", "row 1250, column 7"},
	{2, ROWS - 1, 3, INFINITY, "table t, slot velocities", "row 2499, column 3"},
};

#define BAD_COUNT (sizeof(bad) / sizeof(*bad))

/* Nothing is overwritten before all was looked at, the last row of the last array, too. */
START_TEST(a_bad_number_leaves_the_tables)
{
	const size_t k = (size_t)_i / 2;
	struct embeng_restore_report report, untouched;
	struct embeng *e = open_table(devices[_i % 2], embeng_adam(0.1f), EMBENG_NON_FINITE_ERROR);
	char folder[HELP_PATH];

	folder_new(folder);
	save_with(folder, bad[k].array, bad[k].row, bad[k].column, bad[k].value);
	help_fill(e, 2);
	help_expect(restore_report(e, folder, &report), -ERANGE, bad[k].place);
	expect_text(bad[k].text);
	expect_text(folder);
	expect_text("the tables are as they were");
	expect_text("non_finite allow");
	help_expect_tables(e, 2);
	untouched = (struct embeng_restore_report){.size = sizeof(untouched)};
	ck_assert_mem_eq(&report, &untouched, sizeof(report));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_model_that_allows_them_is_told)
{
	const size_t k = (size_t)_i / 2;
	struct embeng *e = open_table(devices[_i % 2], embeng_adam(0.1f), EMBENG_NON_FINITE_ALLOW);
	struct embeng_restore_report report;
	char folder[HELP_PATH];
	float data[DIM];

	folder_new(folder);
	save_with(folder, bad[k].array, bad[k].row, bad[k].column, bad[k].value);
	help_fill(e, 2);
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.not_finite, 1);
	ck_assert_uint_eq(report.settings, 0);
	ck_assert_ptr_nonnull(strstr(report.text, bad[k].place));
	ck_assert_ptr_nonnull(strstr(report.text, bad[k].text));
	ck_assert_ptr_nonnull(strstr(report.text, "non_finite is allow"));
	ck_assert_ptr_null(strchr(report.text, '\n'));
	help_expect_ok(embeng_rows_read(e, 0, help_slot(embeng_get_model(e), 0, bad[k].array),
					&bad[k].row, 1, data));
	ck_assert(!isfinite(data[bad[k].column]));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Ones, but for the last number of the last velocities, and one that is not finite before it. */
static int give_ones(void *arg, int table, const char *slot, const struct embeng_shard_rows *rows,
		     float *data)
{
	size_t count = (size_t)rows->count * DIM;

	(void)table;
	for (size_t i = 0; i < count; i++)
		data[i] = 1.0f;
	if (!strcmp(slot, "velocities") && rows->first + rows->count == ROWS) {
		data[count - 2] = INFINITY;
		data[count - 1] = *(const float *)arg;
	}
	return 0;
}

/* No policy lets an optimizer take the root of it, so that it is refused when it is written. */
START_TEST(a_slot_that_the_optimizer_cannot_have)
{
	const struct embeng_write_options o = {
		.size = sizeof(o),
		.save = {.size = sizeof(o.save), .flags = EMBENG_SAVE_NOT_FINITE}};
	struct embeng *e = open_table(devices[0], embeng_adam(0.1f),
				      _i ? EMBENG_NON_FINITE_ALLOW : EMBENG_NON_FINITE_ERROR);
	char folder[HELP_PATH];
	float last = 1.0f;

	folder_new(folder);
	help_expect_ok(
		embeng_checkpoint_write(folder, embeng_get_model(e), give_ones, &last, &o, NULL));
	last = -0.5f;
	help_expect(
		embeng_checkpoint_write(folder, embeng_get_model(e), give_ones, &last, &o, NULL),
		-ERANGE, "table t, slot velocities, row 2499, column 129: -0.5 must be 0 or above");
	expect_text("is as it was");
	ck_assert_int_eq(embeng_restore(e, folder, NULL), _i ? 0 : -ERANGE);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static size_t count_lines(const char *text)
{
	size_t lines = *text != 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

START_TEST(settings_that_differ_are_named)
{
	struct embeng_optimizer other = embeng_adam(0.25f);
	struct embeng_restore_report report;
	struct embeng *e;
	char folder[HELP_PATH];

	other.beta_1 = 0.0f;
	other.beta_2 = 0.5f;
	other.use_non_lazy = 1;
	other.has_clip_weight_max = 1;
	other.clip_weight_max = 0.0f;
	other.weight_decay_factor = 0.125f;
	folder_new(folder);
	e = open_table(devices[0], embeng_adam(0.1f), EMBENG_NON_FINITE_ERROR);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.settings, 0);
	ck_assert_str_eq(report.text, "");
	embeng_close(e);
	e = open_table(devices[0], other, EMBENG_NON_FINITE_ERROR);
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.settings, count_lines(report.text));
	ck_assert_ptr_nonnull(strstr(report.text, "table t: learning_rate is 0.1"));
	ck_assert_ptr_nonnull(strstr(report.text, " in the checkpoint, the model has 0.25\n"));
	ck_assert_ptr_nonnull(strstr(report.text, "beta_1 is 0.899999976 in the checkpoint, the "
						  "model has 0\n"));
	ck_assert_ptr_nonnull(strstr(report.text, "beta_2 is "));
	ck_assert_ptr_nonnull(strstr(report.text, "clip_weight_max is none in the checkpoint, the "
						  "model has 0\n"));
	ck_assert_ptr_nonnull(strstr(report.text, "weight_decay_factor is 0 in the checkpoint, the "
						  "model has 0.125"));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A rate that the program sets in each step has a name, and the name is what is compared. */
START_TEST(rates_go_by_name)
{
	struct embeng_optimizer own = embeng_sgd(0.0f);
	struct embeng_restore_report report;
	struct embeng *e = open_table(devices[0], embeng_sgd(0.5f), EMBENG_NON_FINITE_ERROR);
	char folder[HELP_PATH];

	own.rate_name = "warm";
	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	e = open_table(devices[0], own, EMBENG_NON_FINITE_ERROR);
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_str_eq(report.text, "table t: rate_name is none in the checkpoint, the model has "
				      "warm");
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.settings, 0);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* So has each hyperparameter that the program sets in each step. The index keeps these names. */
START_TEST(dynamic_hyperparameters_go_by_name)
{
	const struct embeng_dynamic list[] = {{"weight_decay_factor", "decay"},
					      {"max_norm", "long"}};
	const struct embeng_dynamic other[] = {{"max_norm", "wide"},
					       {"weight_decay_factor", "decay"}};
	struct embeng_optimizer saved = embeng_sgd(0.5f), own = saved;
	struct embeng_restore_report report;
	struct embeng *e;
	char folder[HELP_PATH];

	saved.dynamic = list;
	own.dynamic = other;
	saved.dynamic_count = own.dynamic_count = 2;
	folder_new(folder);
	e = open_table(devices[0], saved, EMBENG_NON_FINITE_ERROR);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.settings, 0);
	embeng_close(e);
	e = open_table(devices[0], own, EMBENG_NON_FINITE_ERROR);
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_str_eq(report.text,
			 "table t: dynamic max_norm is long in the checkpoint, the model "
			 "has wide");
	embeng_close(e);
	e = open_table(devices[0], embeng_sgd(0.5f), EMBENG_NON_FINITE_ERROR);
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.settings, 2);
	ck_assert_ptr_nonnull(strstr(report.text, "dynamic weight_decay_factor is decay in the "
						  "checkpoint, the model has none"));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* All are counted, and as many told as there is room for. */
START_TEST(more_notes_than_room)
{
	static char names[60][16];
	struct help_table tables[60];
	struct embeng_restore_report report;
	struct embeng *e;
	char folder[HELP_PATH];

	for (size_t i = 0; i < 60; i++) {
		snprintf(names[i], sizeof(names[i]), "t%zu", i);
		tables[i] = (struct help_table){names[i], 2, 2, embeng_sgd(0.5f)};
	}
	folder_new(folder);
	e = help_open(SMALL, tables, 60);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	for (size_t i = 0; i < 60; i++)
		tables[i].optimizer = embeng_sgd(0.25f);
	e = help_open(SMALL, tables, 60);
	help_expect_ok(restore_report(e, folder, &report));
	ck_assert_uint_eq(report.settings, 60);
	ck_assert_uint_lt(strlen(report.text), sizeof(report.text));
	ck_assert_uint_gt(count_lines(report.text), 20);
	ck_assert_str_eq(strrchr(report.text, '\n'), "\nand more");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_bad_number_leaves_the_tables, 0, 2 * BAD_COUNT);
	tcase_add_loop_test(tcase, a_model_that_allows_them_is_told, 0, 2 * BAD_COUNT);
	tcase_add_loop_test(tcase, a_slot_that_the_optimizer_cannot_have, 0, 2);
	tcase_add_test(tcase, settings_that_differ_are_named);
	tcase_add_test(tcase, rates_go_by_name);
	tcase_add_test(tcase, dynamic_hyperparameters_go_by_name);
	tcase_add_test(tcase, more_notes_than_room);
}

int main(void)
{
	return suite_main("notes", add);
}
