// SPDX-License-Identifier: MIT
/* Lookups over an open engine: they see each update that was handed in. */
#include "serving_help.h"

static struct embeng_serving *serve(struct embeng *e)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s = NULL;

	ck_assert_msg(!embeng_serving_live(e, NULL, &s, &error), "%s", error.text);
	return s;
}

static void expect_row_1(struct embeng_serving *s, float value)
{
	struct embeng_serving_input in = dense_input(0, I(1), 1);

	in.shape = I(1);
	in.rank = 1;
	expect_lookup(s, in, SHAPE(1, 2), F(value, value + 1), 2);
}

/* Each step takes 1 off row 1. */
static void step(struct embeng *e)
{
	struct embeng_activations a = {.size = sizeof(a)};

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
}

START_TEST(sees_each_update)
{
	for (int pipelining = 0; pipelining < 2; pipelining++) {
		struct embeng *e = open_small(&(struct shape){.combiner = EMBENG_SUM,
							      .optimizer = embeng_sgd(1),
							      .pipelining = pipelining});
		struct embeng_serving *s = serve(e);

		expect_row_1(s, 10);
		step(e);
		expect_row_1(s, 9);
		step(e);
		step(e);
		expect_row_1(s, 7);
		embeng_serving_close(s);
		embeng_close(e);
	}
}
END_TEST

/* As with rows: half of a step's replicas ahead is not a state of the tables. */
START_TEST(waits_for_no_replica)
{
	struct embeng *e = open_small(&(struct shape){.combiner = EMBENG_SUM,
						      .replicas = 2,
						      .optimizer = embeng_sgd(1),
						      .pipelining = 1});
	struct embeng_serving *s = serve(e);
	struct embeng_serving_input in = dense_input(0, I(1), 1);

	in.shape = I(1);
	in.rank = 1;
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	expect_refusal(s, in, -ETIME, "replica 1");
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 1, 0), 0);
	expect_row_1(s, 10);
	embeng_serving_close(s);
	embeng_close(e);
}
END_TEST

/* Ids of two inputs of one table, in any order and more than once. */
START_TEST(reads_each_row_once_for_all)
{
	struct embeng *e = open_tables();
	struct embeng_serving *s = serve(e);
	float out[12];
	struct embeng_serving_input in[] = {
		ragged_input(MEAN_BAG, I(3, 3, 0), I(0, 1, 3), 3),
		ragged_input(SUM_BAG, I(2), I(0, 1), 2),
		ragged_input(SEQUENCE, I(0, 1), I(0, 2), 2),
		ragged_input(SEQUENCE, NULL, I(0, 0), 2),
	};

	for (int i = 0, at = 0; i < 4; i++) {
		in[i].out = out + at;
		in[i].out_elements = i == 1 ? 2 : 4;
		at += i == 1 ? 2 : i == 3 ? 0 : 4;
	}
	in[3].out = out + 8;
	ck_assert_int_eq(embeng_serving_lookup(s, in, 3), 0);
	expect_floats(out, F(30, 31, 15, 16, 20, 21, 0, 1, 10, 11), 10);
	ck_assert_int_eq(embeng_serving_lookup(s, &in[3], 1), 0);
	expect_floats(out + 8, F(0, 0, 0, 0), 4);
	embeng_serving_close(s);
	embeng_close(e);
}
END_TEST

START_TEST(refused_handles)
{
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_serving *s = NULL;
	struct embeng *e = open_tables();

	ck_assert_int_eq(embeng_serving_live(NULL, NULL, &s, &error), -EINVAL);
	ck_assert_int_eq(embeng_serving_live(e, NULL, NULL, &error), -EINVAL);
	ck_assert(strstr(error.text, "out must be given") != NULL);
	ck_assert_ptr_null(s);
	embeng_close(e);
}
END_TEST

RUN_SUITE("serving_live", sees_each_update, waits_for_no_replica, reads_each_row_once_for_all,
	  refused_handles)
