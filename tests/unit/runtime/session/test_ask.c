// SPDX-License-Identifier: MIT
/*
 * embeng_ask(): long calls ask the program whether they shall end, and one that was ended has changed
 * nothing. The first time is 50 ms after the function was given, so that a call that begins later asks
 * at once.
 */
#include <stdbool.h>
#include <unistd.h>

#include "session_help.h"

#define IDS 5000
#define DIM 64
#define ASK_US 60000

static int asked;

static int end_call(void *arg)
{
	asked++;
	return *(const int *)arg;
}

static struct embeng *open_table(void)
{
	const struct embeng_table_config t = {
		.size = sizeof(t),
		.name = "t",
		.vocabulary_size = IDS,
		.dim = DIM,
		.initializer = {EMBENG_INIT_CONSTANT, 1, 0, 0},
		.optimizer = embeng_sgd(0.5f),
	};
	const struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	const struct embeng_engine_config c = {.size = sizeof(c)};

	return open_single("soft:cores=1,memory=64M", &t, &f, &c);
}

/* A batch that reads each row once, and gradients of 2 for it. */
struct given {
	struct embeng_batch *batch;
	int64_t ids[IDS], splits[IDS + 1];
	float ones[IDS], gradient[IDS * DIM];
	const float *gradients[1];
	struct embeng_gradients g;
};

static struct given *make_given(struct embeng *e, enum embeng_mode mode)
{
	static struct given given;

	for (int k = 0; k < IDS; k++) {
		given.ids[k] = given.splits[k] = k;
		given.ones[k] = 1;
	}
	given.splits[IDS] = IDS;
	for (int k = 0; k < IDS * DIM; k++)
		given.gradient[k] = 2;
	given.gradients[0] = given.gradient;
	given.g = (struct embeng_gradients){
		.size = sizeof(given.g), .count = 1, .features = given.gradients};
	given.batch = embeng_batch_new(e, mode, 0);
	ck_assert_int_eq(embeng_batch_ragged_splits(given.batch, 0, EMBENG_I64, given.ids, IDS,
						    given.splits, IDS + 1, given.ones, IDS),
			 0);
	return &given;
}

static void begin_asking(const int *answer)
{
	asked = 0;
	embeng_ask(end_call, (void *)(uintptr_t)answer);
	usleep(ASK_US);
}

static void expect_ended(int ret)
{
	embeng_ask(NULL, NULL);
	ck_assert_int_eq(ret, -EINTR);
	ck_assert_int_eq(asked, 1);
	expect_text("embeng_ask()");
}

static float read_number(struct embeng *e)
{
	const int64_t id = IDS - 1;
	float row[DIM];

	ck_assert_int_eq(embeng_rows_read(e, 0, "parameters", &id, 1, row), 0);
	return row[DIM - 1];
}

START_TEST(an_update)
{
	const int yes = 1, no = 0;
	struct embeng *e = open_table();
	uint64_t step = 0;
	struct given *given = make_given(e, EMBENG_TRAIN);

	begin_asking(&yes);
	expect_ended(embeng_update(e, given->batch, &given->g, -1));
	ck_assert_float_eq(read_number(e), 1);
	begin_asking(&no);
	ck_assert_int_eq(embeng_update(e, given->batch, &given->g, -1), 0);
	ck_assert_int_eq(asked, 1);
	embeng_ask(NULL, NULL);
	ck_assert_float_eq(read_number(e), 0);
	ck_assert_int_eq(embeng_step(e, &step), 0);
	ck_assert_uint_eq(step, 1);
	embeng_batch_free(given->batch);
	embeng_close(e);
}
END_TEST

START_TEST(gradients_of_a_view)
{
	const int yes = 1;
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_table();
	struct given *given = make_given(e, EMBENG_TRAIN);

	ck_assert_int_eq(embeng_enqueue(e, given->batch, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	begin_asking(&yes);
	expect_ended(embeng_apply_gradients(e, &given->g, -1));
	ck_assert_float_eq(read_number(e), 1);
	ck_assert_int_eq(embeng_apply_gradients(e, &given->g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	ck_assert_float_eq(read_number(e), 0);
	embeng_batch_free(given->batch);
	embeng_close(e);
}
END_TEST

START_TEST(a_norm)
{
	const int yes = 1;
	struct embeng_gradient_norms norms = {.size = sizeof(norms), .norm = -1};
	struct embeng *e = open_table();
	struct given *given = make_given(e, EMBENG_INFERENCE);
	const struct embeng_gradients *g = &given->g;

	begin_asking(&yes);
	expect_ended(embeng_gradient_norm(e, &given->batch, &g, 1, &norms));
	ck_assert_double_eq(norms.norm, -1);
	ck_assert_int_eq(embeng_gradient_norm(e, &given->batch, &g, 1, &norms), 0);
	ck_assert_double_eq_tol(norms.norm * norms.norm, 4.0 * IDS * DIM, 1e-3);
	embeng_batch_free(given->batch);
	embeng_close(e);
}
END_TEST

START_TEST(gradients_of_weights)
{
	const int yes = 1;
	static float weights[IDS];
	float *const places[] = {weights};
	const size_t counts[] = {IDS};
	struct embeng *e = open_table();
	struct given *given = make_given(e, EMBENG_INFERENCE);

	weights[IDS - 1] = -1;
	begin_asking(&yes);
	expect_ended(embeng_weight_gradients(e, given->batch, &given->g, places, counts, 1));
	ck_assert_float_eq(weights[IDS - 1], -1);
	ck_assert_int_eq(embeng_weight_gradients(e, given->batch, &given->g, places, counts, 1), 0);
	/* The mean of one row does not depend on its weight. */
	ck_assert_float_eq(weights[IDS - 1], 0);
	embeng_batch_free(given->batch);
	embeng_close(e);
}
END_TEST

/* Memory is made in it with a lock of the library's held, where nobody may be asked. */
START_TEST(a_lookup_asks_nobody)
{
	const int yes = 1;
	struct embeng_activations a = {.size = sizeof(a)};
	struct embeng *e = open_table();
	struct given *given = make_given(e, EMBENG_INFERENCE);

	begin_asking(&yes);
	ck_assert_int_eq(embeng_enqueue(e, given->batch, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	ck_assert_int_eq(asked, 0);
	embeng_ask(NULL, NULL);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	embeng_batch_free(given->batch);
	embeng_close(e);
}
END_TEST

RUN_SUITE("ask", an_update, gradients_of_a_view, a_norm, gradients_of_weights, a_lookup_asks_nobody)
