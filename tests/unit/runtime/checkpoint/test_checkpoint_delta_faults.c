// SPDX-License-Identifier: MIT
/*
 * Each file operation of a delta's save fails in turn: the folder has the old checkpoint or the new
 * one, whole, and so are the earlier ones. A base that cannot be read makes a full save.
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

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, each_operation_of_a_delta_fails, 0, 4);
}

int main(void)
{
	return suite_main("delta faults", add);
}
