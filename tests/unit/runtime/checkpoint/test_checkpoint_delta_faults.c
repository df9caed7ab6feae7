// SPDX-License-Identifier: MIT
/*
 * Each file operation of a delta's save fails in turn: the folder has the old checkpoint or the new
 * one, whole, and so are the earlier ones. A base that cannot be read makes a full save. The same is
 * tried with a chain that is folded, and with one that is restored.
 */
#include "checkpoint_edit.h"
#include "file_faults.h"
#include "suite.h"

#define ROW 9

static struct embeng_save_report report;

static int save_value(struct embeng *e, const char *folder, float value, uint32_t keep)
{
	struct embeng_save_options o = {
		.size = sizeof(o), .flags = EMBENG_SAVE_DELTA, .keep = keep, .report = &report};
	const float row[] = {value, value, value, value};
	const int64_t id = ROW;

	report = (struct embeng_save_report){.size = sizeof(report)};
	help_expect_ok(embeng_rows_write(e, 0, NULL, &id, 1, row));
	return embeng_save(e, folder, &o);
}

/* The row's value in the checkpoint @back saves ago; the other rows are as they were filled. */
static float value_of(const char *folder, size_t back)
{
	struct embeng_checkpoint *c = NULL;
	static float rows[400 * 4];

	help_expect_ok(embeng_checkpoint_open_earlier(folder, back, &c, NULL));
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 0, 400, rows));
	help_compare(rows, 4 * ROW, 0, 0, 1);
	embeng_checkpoint_close(c);
	return rows[4 * ROW + 3];
}

static size_t count_files(const char *folder)
{
	static char names[HELP_FILES][256];

	return folder_files(folder, names, HELP_FILES);
}

/* The new value is there if the save says so, or if it may have been committed when it failed. */
static void check_value(const char *folder, int ret)
{
	float value = value_of(folder, 0);
	bool maybe = fault.hit == FAULT_SYNC || fault.hit == FAULT_OPEN;

	if (!ret)
		ck_assert_float_eq(value, 2);
	else
		ck_assert(value == 1 || (value == 2 && maybe));
}

static struct embeng *open_filled(void)
{
	const struct help_table t = {"t", 400, 4, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=1,memory=1M", &t, 1);

	help_fill(e, 1);
	return e;
}

START_TEST(each_operation_of_a_delta_fails)
{
	static const int codes[] = {-EIO, -ENOSPC};
	const uint32_t keep = 1 + (uint32_t)_i / 2;
	struct embeng *e = open_filled();
	int ret, left, deltas = 0, full = 0, failed = 0;
	char folder[HELP_PATH];

	folder_new(folder);
	disarm();
	help_expect_ok(save_value(e, folder, 1, keep));
	help_expect_ok(save_value(e, folder, 1, keep));
	for (left = 0;; left++) {
		arm(left, codes[_i % 2], false);
		ret = save_value(e, folder, 2, keep);
		if (!fault.done)
			break;
		deltas += !ret && report.delta;
		full += !ret && !report.delta;
		failed += ret != 0;
		disarm();
		check_value(folder, ret);
		if (keep > 1)
			value_of(folder, 1);
		help_expect_ok(save_value(e, folder, 1, keep));
	}
	help_expect_ok(ret);
	disarm();
	check_value(folder, 0);
	printf("of %d failures %d ended the save, %d left a delta and %d a full one\n", left,
	       failed, deltas, full);
	ck_assert_int_gt(failed, 15);
	ck_assert_int_gt(full, 3);
	help_expect_ok(embeng_save(e, folder,
				   &(struct embeng_save_options){
					   .size = sizeof(struct embeng_save_options), .keep = 1}));
	ck_assert_uint_eq(count_files(folder), 3);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A full checkpoint with value 1, and a delta with value 2. */
static void save_chain(struct embeng *e, const char *folder)
{
	const float row[] = {1, 1, 1, 1};
	const int64_t id = ROW;

	help_expect_ok(embeng_rows_write(e, 0, NULL, &id, 1, row));
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(save_value(e, folder, 2, 2));
	ck_assert_uint_eq(report.delta, 1);
}

static uint32_t deltas_of(const char *folder)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = help_checkpoint(folder);

	help_expect_ok(embeng_checkpoint_info(c, &info));
	embeng_checkpoint_close(c);
	return info.deltas;
}

/* The chain is there, or what it was folded into: the values are the same, and none is lost. */
START_TEST(each_operation_of_a_compaction_fails)
{
	const struct embeng_reshard_options o = {
		.size = sizeof(o), .hosts = 1, .keep = 1 + (uint32_t)_i};
	struct embeng *e = open_filled();
	char folder[HELP_PATH];
	int ret, left, failed = 0;

	folder_new(folder);
	disarm();
	for (left = 0;; left++) {
		save_chain(e, folder);
		arm(left, -EIO, false);
		ret = embeng_checkpoint_reshard(folder, folder, &o, NULL);
		if (!fault.done)
			break;
		disarm();
		failed += ret != 0;
		ck_assert_float_eq(value_of(folder, 0), 2);
		ck_assert(deltas_of(folder) == (ret ? 1 : 0) || fault.hit == FAULT_SYNC ||
			  fault.hit == FAULT_OPEN);
	}
	disarm();
	help_expect_ok(ret);
	ck_assert_float_eq(value_of(folder, 0), 2);
	ck_assert_uint_eq(deltas_of(folder), 0);
	ck_assert_int_gt(failed, 15);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A restore of a chain says what failed, and the tables are as they were; or all is restored. */
START_TEST(each_operation_of_a_restore_fails)
{
	struct embeng *e = open_filled(), *other = open_filled();
	char folder[HELP_PATH];
	float row[4];
	const int64_t id = ROW;
	int ret, left, failed = 0;

	folder_new(folder);
	disarm();
	save_chain(e, folder);
	for (left = 0;; left++) {
		help_fill(other, 5);
		arm(left, -EIO, false);
		ret = embeng_restore(other, folder, NULL);
		disarm();
		if (!ret)
			break;
		failed++;
		ck_assert_int_eq(ret, -EIO);
		help_expect_tables(other, 5);
	}
	ck_assert(!fault.done);
	ck_assert_int_gt(failed, 20);
	help_expect_ok(embeng_rows_read(other, 0, NULL, &id, 1, row));
	ck_assert_float_eq(row[0], 2);
	embeng_close(other);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, each_operation_of_a_delta_fails, 0, 4);
	tcase_add_loop_test(tcase, each_operation_of_a_compaction_fails, 0, 2);
	tcase_add_test(tcase, each_operation_of_a_restore_fails);
}

int main(void)
{
	return suite_main("delta faults", add);
}
