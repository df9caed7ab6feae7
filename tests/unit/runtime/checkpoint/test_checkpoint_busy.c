// SPDX-License-Identifier: MIT
/* Restores into handles with steps in flight, with and without pipelining. */
#include "checkpoint_help.h"
#include "suite.h"

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
	struct embeng *e = open_small(
		&(struct shape){.pipelining = _i, .optimizer = embeng_adam_corrected(0.5f)});
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
	struct embeng *e = open_small(
		&(struct shape){.replicas = 2, .pipelining = 1, .optimizer = embeng_sgd(0.5f)});
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

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_step_in_flight_stays, 0, 2);
	tcase_add_loop_test(tcase, a_handed_in_update_comes_before, 0, 2);
	tcase_add_test(tcase, replicas_ahead_are_named);
	tcase_add_test(tcase, inference_in_flight_reads_one_or_the_other);
}

int main(void)
{
	return suite_main("busy", add);
}
