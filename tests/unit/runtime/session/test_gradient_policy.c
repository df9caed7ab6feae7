// SPDX-License-Identifier: MIT
/* Numbers that are not finite, or that cannot be where they are given: gradients, rows, slots. */
#include "session_help.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};

enum place { PLAIN, BUFFER, OWN, PLACES };

/* One table "t" of rows x dim that begins with zeros, one feature "f". */
static struct embeng *open_policy(enum embeng_non_finite policy, int64_t rows, int64_t dim,
				  struct embeng_optimizer optimizer)
{
	struct embeng_table_config t = {.size = sizeof(t),
					.name = "t",
					.vocabulary_size = rows,
					.dim = dim,
					.combiner = EMBENG_SUM,
					.optimizer = optimizer,
					.initializer = {.kind = EMBENG_INIT_CONSTANT}};
	struct embeng_feature_config f = {.size = sizeof(f), .name = "f"};
	struct embeng_engine_config c = {.size = sizeof(c), .non_finite = policy};
	struct embeng_model *m = embeng_model_new();
	struct embeng *e = NULL;

	ck_assert_int_eq(embeng_model_add_table(m, &t), 0);
	ck_assert_int_eq(embeng_model_add_feature(m, &f), 0);
	ck_assert_int_eq(embeng_model_set_engine(m, &c), 0);
	ck_assert_int_eq(embeng_open(SMALL, m, &e, NULL), 0);
	embeng_model_free(m);
	return e;
}

/* Sample s looks up row s. */
static void look_up(struct embeng *e, size_t rows)
{
	const int64_t shape[] = {(int64_t)rows};
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	int64_t *ids = calloc(rows, sizeof(*ids));

	for (size_t i = 0; i < rows; i++)
		ids[i] = (int64_t)i;
	ck_assert_int_eq(embeng_batch_dense(b, 0, EMBENG_I64, ids, rows, shape, 1), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	embeng_batch_free(b);
	free(ids);
}

static int apply(struct embeng *e, const float *from, float multiplier, int given)
{
	const struct embeng_gradients g = {.size = sizeof(g),
					   .count = 1,
					   .features = &from,
					   .multiplier = multiplier,
					   .has_multiplier = given};

	return embeng_apply_gradients(e, &g, -1);
}

static void expect_all(struct embeng *e, size_t count, float want)
{
	float *rows = calloc(2 * count, sizeof(*rows));

	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, count, rows), 0);
	for (size_t i = 0; i < count; i++)
		ck_assert_msg(rows[i] == want, "[%zu]: %g", i, (double)rows[i]);
	free(rows);
}

/* Wherever it stands: at the ends of vectors and of the pieces that are copied, in any memory. */
START_TEST(a_gradient_is_refused)
{
	static const size_t at[] = {0, 1, 7, 31, 63, 64, 8191, 8192, 8193, 19999};
	const size_t rows = 20000;
	struct embeng *e = open_policy(EMBENG_NON_FINITE_ERROR, (int64_t)rows, 1, embeng_sgd(1));
	float *plain = calloc(rows, sizeof(*plain));
	float *buffer = embeng_buffer_alloc(e, rows * sizeof(*buffer));

	for (int place = PLAIN; place < PLACES; place++) {
		float *from = place == PLAIN ? plain : buffer;

		look_up(e, rows);
		if (place == OWN)
			from = embeng_gradient_buffer(e, 0, 0);
		for (size_t i = 0; i < rows; i++)
			from[i] = 0;
		for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
			char text[64];

			from[at[i]] = bad[i % 4];
			snprintf(text, sizeof(text), "feature f, sample %zu, column 0", at[i]);
			ck_assert_int_eq(apply(e, from, 0, 0), -ERANGE);
			expect_text(text);
			from[at[i]] = 0;
		}
		expect_all(e, rows, (float)-place);
		for (size_t i = 0; i < rows; i++)
			from[i] = 1;
		ck_assert_int_eq(apply(e, from, 0, 0), 0);
		expect_all(e, rows, (float)(-place - 1));
	}
	embeng_buffer_free(e, buffer);
	free(plain);
	embeng_close(e);
}
END_TEST

/* Finite numbers pass, however large or small they are. */
START_TEST(finite_extremes_pass)
{
	const float g[] = {FLT_MAX, -FLT_MAX, 0x1p-149f, -0x1p-149f, -0.0f, FLT_MIN};
	struct embeng *e = open_policy(EMBENG_NON_FINITE_ERROR, 6, 1, embeng_sgd(1));
	float rows[6];

	look_up(e, 6);
	ck_assert_int_eq(apply(e, g, 0, 0), 0);
	ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, 6, rows), 0);
	for (int i = 0; i < 6; i++)
		ck_assert(rows[i] == -g[i]);
	embeng_close(e);
}
END_TEST

START_TEST(rows_are_dropped_or_taken)
{
	const size_t rows = 3000;

	for (int policy = EMBENG_NON_FINITE_DROP; policy <= EMBENG_NON_FINITE_ALLOW; policy++) {
		struct embeng *e = open_policy((enum embeng_non_finite)policy, (int64_t)rows, 3,
					       embeng_sgd(1));
		struct embeng_table_stats s = {.size = sizeof(s)};
		float *g = calloc(3 * rows, sizeof(*g)), *got = calloc(3 * rows, sizeof(*got));

		look_up(e, rows);
		for (size_t i = 0; i < 3 * rows; i++)
			g[i] = i % 70 ? 1 : bad[i / 70 % 4];
		ck_assert_int_eq(apply(e, g, 0, 0), 0);
		ck_assert_int_eq(embeng_rows_read(e, 0, NULL, NULL, rows, got), 0);
		for (size_t i = 0; i < 3 * rows; i++) {
			bool reached = false;

			for (size_t c = 0; c < 3; c++)
				reached |= (i / 3 * 3 + c) % 70 == 0;
			if (policy == EMBENG_NON_FINITE_DROP && reached)
				ck_assert(got[i] == 0);
			else if (i % 70 == 0)
				ck_assert(!isfinite(got[i]));
			else
				ck_assert(got[i] == -1);
		}
		ck_assert_int_eq(embeng_stats(e, 0, 1, &s), 0);
		ck_assert_uint_eq(s.nonfinite_gradient_rows, (3 * rows + 69) / 70);
		ck_assert_uint_eq(s.updated_rows, policy == EMBENG_NON_FINITE_DROP
							  ? rows - s.nonfinite_gradient_rows
							  : rows);
		ck_assert_int_eq(embeng_stats(e, 0, 0, &s), 0);
		ck_assert_uint_eq(s.nonfinite_gradient_rows, 0);
		free(g);
		free(got);
		embeng_close(e);
	}
}
END_TEST

START_TEST(multipliers)
{
	const float one = 1;
	struct embeng *e = open_policy(EMBENG_NON_FINITE_ERROR, 1, 1, embeng_sgd(1));

	look_up(e, 1);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(apply(e, &one, bad[i], i % 2), -ERANGE);
		expect_text("multiplier");
	}
	ck_assert_int_eq(apply(e, &one, 0, 1), 0);
	expect_all(e, 1, 0);
	look_up(e, 1);
	ck_assert_int_eq(apply(e, &one, 0, 0), 0);
	expect_all(e, 1, -1);
	look_up(e, 1);
	ck_assert_int_eq(apply(e, &one, -0.5f, 0), 0);
	expect_all(e, 1, -0.5f);
	embeng_close(e);
}
END_TEST

/* All rows of a call, or none; the message has the row by its number in the table. */
START_TEST(rows_that_cannot_be)
{
	const int64_t ids[] = {3, 1, 2};
	struct embeng *e = open_policy(EMBENG_NON_FINITE_ERROR, 4, 2, embeng_adam(0.5f));

	for (int i = 0; i < 4; i++) {
		const float rows[] = {1, 1, 1, 1, 1, bad[i]};

		ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 3, rows), -ERANGE);
		expect_text("table t, parameters, row 2, column 1");
		ck_assert_int_eq(embeng_rows_write(e, 0, "momenta", ids, 3, rows), -ERANGE);
		expect_text("table t, slot momenta, row 2, column 1");
	}
	expect_all(e, 4, 0);
	for (int i = 0; i < 2; i++) {
		const float rows[] = {1, i ? -1 : -0x1p-149f, 1, 1, 1, 1};

		ck_assert_int_eq(embeng_rows_write(e, 0, "velocities", ids, 3, rows), -ERANGE);
		expect_text("table t, slot velocities, row 3, column 1");
		expect_text("must be 0 or above");
		ck_assert_int_eq(embeng_rows_write(e, 0, "momenta", ids, 3, rows), 0);
	}
	ck_assert_int_eq(embeng_rows_write(e, 0, "velocities", ids, 3,
					   (const float[]){0, -0.0f, 0x1p-149f, FLT_MAX, 1, 2}),
			 0);
	embeng_close(e);
}
END_TEST

START_TEST(what_a_policy_allows_in_rows)
{
	const float any[] = {NAN, INFINITY, -INFINITY}, below[] = {-1};
	struct embeng *e = open_policy(EMBENG_NON_FINITE_ALLOW, 3, 1, embeng_adagrad(0.5f));

	ck_assert_int_eq(embeng_rows_write(e, 0, NULL, NULL, 3, any), 0);
	ck_assert_int_eq(embeng_rows_write(e, 0, "accumulators", NULL, 2, any), 0);
	ck_assert_int_eq(embeng_rows_write(e, 0, "accumulators", NULL, 3, any), -ERANGE);
	ck_assert_int_eq(embeng_rows_write(e, 0, "accumulators", NULL, 1, below), -ERANGE);
	embeng_close(e);
}
END_TEST

static void refuse_fill(struct embeng *e, struct embeng_initializer i, int ret, const char *text)
{
	ck_assert_int_eq(embeng_rows_fill(e, 0, "velocities", 0, 2, &i), ret);
	if (text)
		expect_text(text);
}

START_TEST(fills_that_cannot_be)
{
	struct embeng *e = open_policy(EMBENG_NON_FINITE_ERROR, 4, 2, embeng_adam(0.5f));

	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_CONSTANT, -1, 0, 0}, -ERANGE,
		    "slot velocities");
	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_UNIFORM, -1, 1, 0}, -ERANGE,
		    "slot velocities");
	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_TRUNCATED_NORMAL, 1, 1, 0}, -ERANGE,
		    "slot velocities");
	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_TRUNCATED_NORMAL, 1, FLT_MAX, 0},
		    -ERANGE, "largest float");
	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_CONSTANT, 0, 0, 0}, 0, NULL);
	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_UNIFORM, 0, 1, 0}, 0, NULL);
	refuse_fill(e, (struct embeng_initializer){EMBENG_INIT_TRUNCATED_NORMAL, 1, 0.5f, 0}, 0,
		    NULL);
	embeng_close(e);
}
END_TEST

RUN_SUITE("non finite", a_gradient_is_refused, finite_extremes_pass, rows_are_dropped_or_taken,
	  multipliers, rows_that_cannot_be, what_a_policy_allows_in_rows, fills_that_cannot_be)
