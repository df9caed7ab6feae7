// SPDX-License-Identifier: MIT
/* A whole session, with values worked out by hand. */
#include "session_help.h"

static struct embeng_activations take(struct embeng *e, uint32_t replica)
{
	struct embeng_activations a = {.size = sizeof(a)};
	int ret = embeng_dequeue(e, replica, 0, &a);
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	ck_assert_msg(!ret, "dequeue: %s", error.text);
	return a;
}

/* Gradients of 3 for each element of the bags. */
static int apply_threes(struct embeng *e)
{
	const float threes[] = {3, 3, 3, 3, 3, 3};
	const float *features[] = {threes};
	struct embeng_gradients g = {.size = sizeof(g), .count = 1, .features = features};

	return embeng_apply_gradients(e, &g, -1);
}

START_TEST(looks_up_sums)
{
	const float want[] = {30, 32, 0, 0, 30, 31};
	struct embeng *e = open_small(&(struct shape){.combiner = EMBENG_SUM});
	struct embeng_activations a;

	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, 0), 0);
	a = take(e, 0);
	ck_assert_int_eq(a.mode, EMBENG_INFERENCE);
	ck_assert_uint_eq(a.step, 0);
	ck_assert_uint_eq(a.features[0].rank, 2);
	ck_assert_int_eq(a.features[0].shape[0], 3);
	ck_assert_int_eq(a.features[0].shape[1], 2);
	expect_floats(a.features[0].data, want, 6);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	ck_assert_int_eq(embeng_release(e, &a), -EPROTO);
	embeng_close(e);
}
END_TEST

START_TEST(trains_with_sgd)
{
	const float want[] = {0, 1, 9.5f, 10.5f, 19.5f, 20.5f, 29.5f, 30.5f};
	struct embeng *e = open_small(
		&(struct shape){.combiner = EMBENG_SUM, .optimizer = embeng_sgd(0.5f)});
	float rows[8];
	struct embeng_activations a;

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	a = take(e, 0);
	ck_assert_uint_eq(a.step, 1);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 4, rows), 0);
	expect_floats(rows, want, 8);
	embeng_close(e);
}
END_TEST

/* a = 0.1 + 1 and 0.1 + 0.25: the mean of two ids halves their gradients. */
START_TEST(trains_with_adagrad)
{
	const int64_t ids[] = {3, 1};
	const float want[] = {0.1f + 1, 0.1f + 1, 0.1f + 0.25f, 0.1f + 0.25f};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_adagrad(0.5f)});
	float slot[4];

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	take(e, 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, "accumulators", ids, 2, slot), 0);
	expect_floats(slot, want, 4);
	embeng_close(e);
}
END_TEST

START_TEST(names_the_bad_id)
{
	const int32_t ids[] = {1, 4};
	const int64_t shape[] = {2};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);

	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I32, ids, 2, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, 0), -ERANGE);
	expect_text("feature f, sample 1: id 4 is outside table t");
	embeng_batch_free(b);
	/* The refused batch consumed nothing: the step is given again. */
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_uint_eq(take(e, 0).step, 1);
	embeng_close(e);
}
END_TEST

START_TEST(refuses_steps_out_of_order)
{
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});

	ck_assert_int_eq(embeng_dequeue(e, 0, 0, &a), -EPROTO);
	ck_assert_int_eq(apply_ones(e, 0), -EPROTO);
	expect_text("step 1");
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	ck_assert_int_eq(apply_ones(e, 0), -EPROTO);
	expect_text("not dequeued");
	take(e, 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(apply_ones(e, 0), -EPROTO);
	embeng_close(e);
}
END_TEST

START_TEST(refuses_to_train_without_optimizer)
{
	struct embeng *e = open_small(&(struct shape){0});

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), -EINVAL);
	expect_text("table t has no optimizer");
	embeng_close(e);
}
END_TEST

START_TEST(counts)
{
	struct embeng_table_stats s = {.size = sizeof(s)};
	struct embeng *e = open_small(&(struct shape){.optimizer = embeng_sgd(1)});

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, 0), 0);
	take(e, 0);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_stats(e, 0, 1, &s), 0);
	ck_assert_uint_eq(s.ids, 3);
	ck_assert_uint_eq(s.unique_ids, 3);
	ck_assert_uint_eq(s.steps, 1);
	ck_assert_uint_eq(s.core_count, 2);
	ck_assert_int_eq(embeng_stats(e, 0, 0, &s), 0);
	ck_assert_uint_eq(s.ids, 0);
	embeng_close(e);
}
END_TEST

static int apply_rated(struct embeng *e, uint32_t replica, const char *name, float value)
{
	const float *features[] = {NULL};
	struct embeng_rate rate = {.name = name, .value = value};
	struct embeng_gradients g = {.size = sizeof(g),
				     .replica = replica,
				     .count = 1,
				     .features = features,
				     .rates = &rate,
				     .rate_count = 1};

	return embeng_apply_gradients(e, &g, 0);
}

START_TEST(rates_must_agree)
{
	struct embeng_optimizer sgd = embeng_sgd(0);
	struct embeng *e;

	sgd.rate_name = "lr";
	e = open_small(&(struct shape){.optimizer = sgd, .replicas = 2});
	for (uint32_t r = 0; r < 2; r++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, r, 0), 0);
		take(e, r);
	}
	ck_assert_int_eq(apply_ones(e, 0), -EINVAL);
	expect_text("learning rate lr is missing");
	ck_assert_int_eq(apply_rated(e, 0, "rate", 1), -ENOENT);
	expect_text("no learning rate named rate");
	ck_assert_int_eq(apply_rated(e, 0, "lr", 1), 0);
	ck_assert_int_eq(apply_rated(e, 1, "lr", 2), -EINVAL);
	expect_text("step 1: replica 1 gives learning rate lr another value");
	ck_assert_int_eq(apply_rated(e, 1, "lr", 1), 0);
	ck_assert_int_eq(embeng_flush(e, 0), 0);
	embeng_close(e);
}
END_TEST

/* A view is its own, and ends once, whatever stands in its place later. */
START_TEST(a_view_ends_once)
{
	struct embeng *e = open_small(&(struct shape){.replicas = 1, .optimizer = embeng_sgd(1)});
	struct embeng_activations serving = {.size = sizeof(serving)};
	struct embeng_activations training = {.size = sizeof(training)}, copy;

	ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &serving), 0);
	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &training), 0);
	ck_assert_int_eq(embeng_release(e, &training), -EPROTO);
	copy = serving;
	ck_assert_int_eq(embeng_release(e, &serving), 0);
	ck_assert_ptr_null(serving.token);
	ck_assert_int_eq(embeng_release(e, &serving), -EPROTO);
	ck_assert_int_eq(embeng_release(e, &copy), -EPROTO);
	ck_assert_int_eq(apply_ones(e, 0), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	embeng_close(e);
}
END_TEST

/* Steps go on behind an inference batch, which does not hold them for longer than it lasts. */
START_TEST(steps_go_on_behind_inference)
{
	struct embeng *e = open_small(&(struct shape){.replicas = 1, .optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	const float want[] = {30 - 3 * 3, 31 - 3 * 3};
	float row[2];

	for (int step = 0; step < 3; step++) {
		ck_assert_int_eq(enqueue_bags(e, EMBENG_INFERENCE, 0, -1), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
		ck_assert_int_eq(embeng_release(e, &a), 0);
		ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
		ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
		ck_assert_int_eq(apply_threes(e), 0);
	}
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, (const int64_t[]){3}, 1, row), 0);
	expect_floats(row, want, 2);
	embeng_close(e);
}
END_TEST

/* With pipelining the update of a step waits for the next lookup; a read does not. */
START_TEST(a_read_sees_complete_steps)
{
	struct embeng *e = open_small(
		&(struct shape){.replicas = 1, .pipelining = 1, .optimizer = embeng_sgd(1)});
	struct embeng_activations a = {.size = sizeof(a)};
	const float want[] = {30 - 3, 31 - 3};
	float row[2];

	ck_assert_int_eq(enqueue_bags(e, EMBENG_TRAIN, 0, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(apply_threes(e), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, (const int64_t[]){3}, 1, row), 0);
	expect_floats(row, want, 2);
	embeng_close(e);
}
END_TEST

RUN_SUITE("session", a_view_ends_once, steps_go_on_behind_inference, a_read_sees_complete_steps,
	  rates_must_agree, looks_up_sums, trains_with_sgd, trains_with_adagrad, names_the_bad_id,
	  refuses_steps_out_of_order, refuses_to_train_without_optimizer, counts)
