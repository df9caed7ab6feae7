// SPDX-License-Identifier: MIT
/* Restores: into any number of cores, other models, too little memory, busy handles. */
#include "../../runtime/src/file.h"
#include "../../runtime/src/session.h"
#include "checkpoint_help.h"

static const struct help_table *all_optimizers(size_t *count)
{
	static struct help_table tables[7];

	tables[0] = (struct help_table){"none", 5, 1, {0}};
	tables[1] = (struct help_table){"sgd", 1, 17, embeng_sgd(0.5f)};
	tables[2] = (struct help_table){"adagrad", 4000, 130, embeng_adagrad(0.1f)};
	tables[3] = (struct help_table){"momentum", 9, 3, embeng_adagrad_momentum(0.1f)};
	tables[4] = (struct help_table){"ftrl", 7, 2, embeng_ftrl(0.1f)};
	tables[5] = (struct help_table){"adam", 300, 4, embeng_adam(0.1f)};
	tables[6] = (struct help_table){"corrected", 33, 16, embeng_adam_corrected(0.1f)};
	*count = 7;
	return tables;
}

static struct embeng *open_all(unsigned int cores)
{
	char device[64];
	size_t count;
	const struct help_table *tables = all_optimizers(&count);

	snprintf(device, sizeof(device), "soft:cores=%u,memory=64M", cores);
	return help_open(device, tables, count);
}

START_TEST(round_trips_over_core_counts)
{
	static const unsigned int cores[] = {1, 2, 3, 7};
	struct embeng *e = open_all(cores[_i / 4]), *f;
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 1 << 20};
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 3);
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
	f = open_all(cores[_i % 4]);
	help_fill(f, 4);
	help_expect_ok(embeng_restore(f, folder, NULL));
	help_expect_tables(f, 3);
	embeng_close(f);
	folder_remove(folder);
}
END_TEST

/* One table "t" of 64 x 4 and a saved checkpoint of it. */
static struct embeng *open_one(const char *device, const char *name, int64_t rows, int64_t dim,
			       struct embeng_optimizer optimizer)
{
	const struct help_table t = {name, rows, dim, optimizer};

	return help_open(device, &t, 1);
}

static void save_one(const char *folder, struct embeng_optimizer optimizer)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, optimizer);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
}

static int restore_flags(struct embeng *e, const char *folder, uint32_t flags)
{
	struct embeng_restore_options o = {.size = sizeof(o), .flags = flags};

	return embeng_restore(e, folder, &o);
}

START_TEST(a_model_without_optimizer_takes_the_parameters)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, (struct embeng_optimizer){0});
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, embeng_adam(0.1f));
	help_fill(e, 2);
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(slots_go_by_name_whatever_the_optimizer)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, embeng_adagrad(0.1f));
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, embeng_ftrl(0.1f));
	help_fill(e, 2);
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_missing_slot_is_named_or_left)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, embeng_adam(0.1f));
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, embeng_adagrad_momentum(0.1f));
	help_fill(e, 2);
	help_expect(embeng_restore(e, folder, NULL), -ENOENT, "table t: slot velocities");
	help_expect_tables(e, 2);
	help_expect_ok(restore_flags(e, folder, EMBENG_RESTORE_MISSING_SLOTS));
	help_expect_array(e, 0, 0, 1);
	/* "momenta" is slot 1 of adagrad_momentum and slot 0 of adam: other values. */
	help_expect_array(e, 0, 2, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_missing_table_is_named_or_left)
{
	struct embeng *e = open_one(SMALL, "u", 64, 4, embeng_sgd(0.1f));
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, embeng_sgd(0.1f));
	help_fill(e, 2);
	help_expect(restore_flags(e, folder, EMBENG_RESTORE_MISSING_SLOTS |
						     EMBENG_RESTORE_OTHER_SHAPES),
		    -ENOENT, "table u is not in");
	help_expect_ok(restore_flags(e, folder, EMBENG_RESTORE_MISSING_TABLES));
	help_expect_tables(e, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(another_shape_is_named_or_left)
{
	struct embeng *rows = open_one(SMALL, "t", 63, 4, embeng_sgd(0.1f));
	struct embeng *dim = open_one(SMALL, "t", 64, 5, embeng_sgd(0.1f));
	char folder[HELP_PATH];

	folder_new(folder);
	save_one(folder, embeng_sgd(0.1f));
	help_fill(rows, 2);
	help_fill(dim, 2);
	help_expect(restore_flags(rows, folder, EMBENG_RESTORE_MISSING_TABLES |
							EMBENG_RESTORE_MISSING_SLOTS),
		    -EINVAL, "table t is 63 x 4");
	help_expect(embeng_restore(dim, folder, NULL), -EINVAL, "it is 64 x 4");
	help_expect_ok(restore_flags(rows, folder, EMBENG_RESTORE_OTHER_SHAPES));
	help_expect_tables(rows, 2);
	help_expect_tables(dim, 2);
	embeng_close(rows);
	embeng_close(dim);
	folder_remove(folder);
}
END_TEST

START_TEST(tables_that_the_model_lacks_are_left_out)
{
	size_t count;
	const struct help_table *tables = all_optimizers(&count);
	struct embeng *e = open_all(2), *f = help_open(SMALL, &tables[5], 1);
	char folder[HELP_PATH];
	float *data = malloc(1200 * sizeof(*data));

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_restore(f, folder, NULL));
	help_expect_ok(embeng_rows_read(f, 0, "velocities", NULL, 300, data));
	help_compare(data, 1200, 5, 2, 1);
	free(data);
	embeng_close(e);
	embeng_close(f);
	folder_remove(folder);
}
END_TEST

START_TEST(says_what_is_wrong_with_the_call)
{
	struct embeng *e = open_one(SMALL, "t", 64, 4, embeng_sgd(0.1f));
	struct embeng_restore_options o = {.size = 4};
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect(embeng_restore(NULL, folder, NULL), -EINVAL, "no handle");
	help_expect(embeng_restore(e, NULL, NULL), -EINVAL, "no folder");
	help_expect(embeng_restore(e, folder, &o), -EINVAL, "size 4");
	help_expect(restore_flags(e, folder, 8), -EINVAL, "flags 0x8");
	help_expect(embeng_restore(e, folder, NULL), -ENOENT, "index.json");
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- progress, cancel, memory -------------------------------------------- */

struct watch {
	unsigned int calls, cancel_at; /* 0: never */
	uint64_t done, total;
	const char *what;
};

static int watch(void *arg, const struct embeng_progress *p)
{
	struct watch *w = arg;

	ck_assert_str_eq(p->what, w->what);
	ck_assert(!w->calls || (p->done >= w->done && p->total == w->total));
	w->done = p->done;
	w->total = p->total;
	return ++w->calls == w->cancel_at;
}

/* Room for the tables, 6 MB with their slots, and not for a copy of each. */
#define TIGHT "soft:cores=2,memory=5M"

static int restore_watched(struct embeng *e, const char *folder, struct watch *w)
{
	struct embeng_restore_options o = {
		.size = sizeof(o), .progress = watch, .progress_arg = w};

	return embeng_restore(e, folder, &o);
}

static void cancel_everywhere(const char *device, unsigned int passes)
{
	const struct help_table t = {"t", 4000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=1,memory=64M", &t, 1);
	struct watch w = {.what = "restore"};
	char folder[HELP_PATH];
	unsigned int calls, taken;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	e = help_open(device, &t, 1);
	help_expect_ok(restore_watched(e, folder, &w));
	ck_assert_uint_eq(w.done, w.total);
	ck_assert_uint_eq(w.total, passes * 2ull * 4000 * 130 * 4);
	calls = w.calls;
	taken = passes == 1 ? calls : 1 + (calls - 1) / 2;
	ck_assert_uint_gt(taken, 4);
	for (unsigned int at = 1; at <= taken; at++) {
		help_fill(e, 2);
		w = (struct watch){.what = "restore", .cancel_at = at};
		help_expect(restore_watched(e, folder, &w), -ECANCELED, "as they were");
		ck_assert_uint_eq(w.calls, at);
		help_expect_tables(e, 2);
	}
	/* In place, with rows overwritten already, there is no way back. */
	for (unsigned int at = taken + 1; at <= calls; at++) {
		w = (struct watch){.what = "restore", .cancel_at = at};
		help_fill(e, 2);
		help_expect_ok(restore_watched(e, folder, &w));
		help_expect_tables(e, 1);
	}
	embeng_close(e);
	folder_remove(folder);
}

START_TEST(cancels_at_each_call_when_staged)
{
	cancel_everywhere("soft:cores=2,memory=64M", 1);
}
END_TEST

START_TEST(cancels_in_the_first_of_two_passes)
{
	cancel_everywhere(TIGHT, 2);
}
END_TEST

START_TEST(moves_rows_in_pieces)
{
	const struct help_table t = {"t", 40000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=2,memory=256M", &t, 1);
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_restore(e, folder, NULL));
	/* 41 MB went through it. */
	ck_assert_uint_le(e->staging.length, 2 << 20);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static int copies_left;

static int copy_then_fail(void *to, const void *from, uint64_t bytes)
{
	return copies_left-- ? file_ops_system.copy(to, from, bytes) : -EFAULT;
}

/* Fails each copy out of the shard in turn; true when the restore needed fewer. */
static bool fail_copy(struct embeng *e, const char *folder, int number, int *ret)
{
	struct file_ops ops = file_ops_system;

	ops.copy = copy_then_fail;
	copies_left = number;
	file_ops = &ops;
	*ret = embeng_restore(e, folder, NULL);
	file_ops = &file_ops_system;
	return copies_left >= 0;
}

START_TEST(a_read_error_leaves_the_tables)
{
	const struct help_table t = {"t", 300, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open("soft:cores=2,memory=64M", &t, 1);
	char folder[HELP_PATH];
	int ret, number = 0;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_fill(e, 2);
	while (!fail_copy(e, folder, number, &ret)) {
		help_expect(ret, -EIO, ".safetensors");
		help_expect_tables(e, 2);
		number++;
	}
	ck_assert_int_gt(number, 10);
	help_expect_ok(ret);
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_read_error_in_place_says_so)
{
	const struct help_table t = {"t", 4000, 130, embeng_adagrad(0.1f)};
	struct embeng *e = help_open(TIGHT, &t, 1);
	char folder[HELP_PATH];
	int ret, number = 0;
	bool mixed = false;

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_fill(e, 2);
	for (; !fail_copy(e, folder, number, &ret); number += mixed ? 1 : 16) {
		struct embeng_error error = {.size = sizeof(error)};

		ck_assert_int_eq(ret, -EIO);
		embeng_last_error(&error);
		mixed = strstr(error.text, "in place, the tables hold some old");
		if (!mixed)
			help_expect_tables(e, 2);
	}
	ck_assert(mixed);
	help_expect_ok(ret);
	help_expect_tables(e, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- with steps in flight ------------------------------------------------ */

static struct embeng_activations take(struct embeng *e, uint32_t replica)
{
	struct embeng_activations a = {.size = sizeof(a)};

	help_expect_ok(embeng_dequeue(e, replica, -1, &a));
	return a;
}

/* A lookup before, its update after: the update lands on the restored rows. */
START_TEST(a_step_in_flight_stays)
{
	const float before[] = {0, 1, 10, 11, 20, 21, 30, 31};
	const float after[] = {0, 1, 9.5f, 10.5f, 19.5f, 20.5f, 29.5f, 30.5f};
	const float looked[] = {3, 3, 0, 0, 3, 3};
	struct embeng *e = open_small(&(struct shape){
		.combiner = EMBENG_MEAN, .pipelining = _i, .optimizer = embeng_sgd(0.5f)});
	float rows[8], threes[8] = {3, 3, 3, 3, 3, 3, 3, 3};
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_rows_write(e, 0, NULL, NULL, 4, threes));
	help_expect_ok(enqueue_bags(e, EMBENG_TRAIN, 0, -1));
	help_expect_ok(embeng_restore(e, folder, NULL));
	expect_floats(take(e, 0).features[0].data, looked, 6);
	help_expect_ok(embeng_rows_read(e, 0, NULL, NULL, 4, rows));
	expect_floats(rows, before, 8);
	help_expect_ok(apply_ones(e, 0));
	help_expect_ok(embeng_rows_read(e, 0, NULL, NULL, 4, rows));
	/* A mean of two halves what each of them gets. */
	ck_assert(rows[2] == 9.75f && rows[4] == 19.75f && rows[6] == after[6]);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Pipelined: update 1 was handed in and is held for lookup 2; a restore drains it first. */
START_TEST(a_handed_in_update_comes_before)
{
	const float before[] = {0, 1, 10, 11, 20, 21, 30, 31};
	struct embeng *e = open_small(&(struct shape){
		.pipelining = _i, .optimizer = embeng_adam_corrected(0.5f)});
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float rows[8];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(enqueue_bags(e, EMBENG_TRAIN, 0, -1));
	take(e, 0);
	help_expect_ok(apply_ones(e, 0));
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_ok(embeng_rows_read(e, 0, NULL, NULL, 4, rows));
	expect_floats(rows, before, 8);
	/* The count of updates went back, too; the one that follows is the first again. */
	help_expect_ok(enqueue_bags(e, EMBENG_TRAIN, 0, -1));
	take(e, 0);
	help_expect_ok(apply_ones(e, 0));
	help_expect_ok(embeng_save(e, folder, NULL));
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.step, 1);
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(replicas_ahead_are_named)
{
	struct embeng *e = open_small(&(struct shape){
		.replicas = 2, .pipelining = 1, .optimizer = embeng_sgd(0.5f)});
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(enqueue_bags(e, EMBENG_TRAIN, 1, 0));
	help_expect(embeng_restore(e, folder, NULL), -ETIME, "embeng_restore: step 1");
	help_expect(embeng_save(e, folder, NULL), -ETIME, "embeng_save: step 1");
	help_expect_ok(enqueue_bags(e, EMBENG_TRAIN, 0, 0));
	help_expect_ok(embeng_restore(e, folder, NULL));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(inference_in_flight_reads_one_or_the_other)
{
	const float old[] = {15, 16, 0, 0, 30, 31}, fresh[] = {3, 3, 0, 0, 3, 3};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(0.5f)});
	const float threes[8] = {3, 3, 3, 3, 3, 3, 3, 3};
	struct embeng_activations a;
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_expect_ok(embeng_rows_write(e, 0, NULL, NULL, 4, threes));
	help_expect_ok(enqueue_bags(e, EMBENG_INFERENCE, 0, -1));
	help_expect_ok(embeng_restore(e, folder, NULL));
	help_expect_ok(enqueue_bags(e, EMBENG_INFERENCE, 0, -1));
	a = take(e, 0);
	expect_floats(a.features[0].data, fresh, 6);
	help_expect_ok(embeng_release(e, &a));
	a = take(e, 0);
	expect_floats(a.features[0].data, old, 6);
	help_expect_ok(embeng_release(e, &a));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("restore");
	TCase *tcase = tcase_create("restore");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(tcase, round_trips_over_core_counts, 0, 16);
	tcase_add_test(tcase, a_model_without_optimizer_takes_the_parameters);
	tcase_add_test(tcase, slots_go_by_name_whatever_the_optimizer);
	tcase_add_test(tcase, a_missing_slot_is_named_or_left);
	tcase_add_test(tcase, a_missing_table_is_named_or_left);
	tcase_add_test(tcase, another_shape_is_named_or_left);
	tcase_add_test(tcase, tables_that_the_model_lacks_are_left_out);
	tcase_add_test(tcase, says_what_is_wrong_with_the_call);
	tcase_add_test(tcase, cancels_at_each_call_when_staged);
	tcase_add_test(tcase, cancels_in_the_first_of_two_passes);
	tcase_add_test(tcase, moves_rows_in_pieces);
	tcase_add_test(tcase, a_read_error_leaves_the_tables);
	tcase_add_test(tcase, a_read_error_in_place_says_so);
	tcase_add_loop_test(tcase, a_step_in_flight_stays, 0, 2);
	tcase_add_loop_test(tcase, a_handed_in_update_comes_before, 0, 2);
	tcase_add_test(tcase, replicas_ahead_are_named);
	tcase_add_test(tcase, inference_in_flight_reads_one_or_the_other);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
