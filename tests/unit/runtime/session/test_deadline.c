// SPDX-License-Identifier: MIT
/*
 * A call whose deadline passes while the device waits for the program fails with ETIME, and the
 * error says what is missing.
 */
#include "session_help.h"

START_TEST(dequeue_names_missing_gradients)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), -ETIME);
	expect_text("step 1: gradients of replica 0");
	ck_assert_int_eq(embeng_dequeue(e, 0, 1000000, &a), -ETIME);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_uint_eq(a.step, 2);
	embeng_close(e);
}
END_TEST

START_TEST(enqueue_beyond_depth)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1), .depth = 2});

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), -ETIME);
	expect_text("step 1: gradients of replica 0");
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	embeng_close(e);
}
END_TEST

START_TEST(other_replica_is_named)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1), .replicas = 2});

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), -ETIME);
	expect_text("of replica 1");
	embeng_close(e);
}
END_TEST

/* All gave their gradients of step 1, which wait for the lookup of step 2 by replica 1. */
START_TEST(pipelining_names_the_lookup_that_holds_an_update)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&(struct shape){
		.optimizer = embeng_sgd(1), .replicas = 2, .pipelining = 1, .depth = 2});

	for (uint32_t r = 0; r < 2; r++)
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, r, 0), 0);
	for (uint32_t r = 0; r < 2; r++) {
		ck_assert_int_eq(embeng_dequeue(e, r, 0, &a), 0);
		ck_assert_int_eq(apply_ones(e, r), 0);
	}
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), -ETIME);
	expect_text("step 3 of replica 0 is more than 2 steps ahead; missing is step 2: lookup of "
		    "replica 1");
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 1, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	embeng_close(e);
}
END_TEST

START_TEST(drain_between_lookups_of_one_step)
{
	float rows[8];
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(
		&(struct shape){.optimizer = embeng_sgd(1), .replicas = 2, .pipelining = 1});

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), -ETIME);
	expect_text("step 1: lookup of replica 1");
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 1, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	embeng_close(e);
}
END_TEST

/* Step 2 reads before update 1, and step 3 before update 2, though a flush had it applied. */
START_TEST(pipelining_is_stale_by_one)
{
	const float first[] = {30, 32, 0, 0, 30, 31}, third[] = {28, 30, 0, 0, 29, 30};
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&(struct shape){
		.optimizer = embeng_sgd(1), .pipelining = 1, .combiner = EMBENG_SUM});

	for (int step = 1; step <= 2; step++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
		expect_floats(a.features[0].data, first, 6);
		ck_assert_int_eq(apply_ones(e, 0), 0);
	}
	ck_assert_int_eq(embeng_flush(e, 0), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	expect_floats(a.features[0].data, third, 6);
	embeng_close(e);
}
END_TEST

RUN_SUITE("deadline", dequeue_names_missing_gradients, enqueue_beyond_depth, other_replica_is_named,
	  pipelining_names_the_lookup_that_holds_an_update, drain_between_lookups_of_one_step,
	  pipelining_is_stale_by_one)
