// SPDX-License-Identifier: MIT
/*
 * Finite in, finite out, through the library: means of tiny weights, forward and backward. A running
 * sum or a slot may leave f32 all the same: activations and updated rows of that kind are counted.
 */
#include <float.h>
#include <math.h>

#include "session_help.h"
#include "suite.h"
#include "variants.h"

#define ROWS 6
#define DIM 19

struct session {
	struct embeng *e;
	struct embeng_batch *batch;
};

static struct session start(const char *variant, int cores, enum embeng_combiner_name combiner,
			    struct embeng_optimizer optimizer)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct session s;
	char name[96];

	ck_assert_int_eq(
		embeng_model_add_table(m,
				       &(struct embeng_table_config){
					       .size = sizeof(struct embeng_table_config),
					       .vocabulary_size = ROWS,
					       .dim = DIM,
					       .combiner = combiner,
					       .optimizer = optimizer,
					       .initializer = {EMBENG_INIT_CONSTANT, 0.5f, 0, 0}}),
		0);
	ck_assert_int_eq(
		embeng_model_add_feature(m,
					 &(struct embeng_feature_config){
						 .size = sizeof(struct embeng_feature_config)}),
		0);
	snprintf(name, sizeof(name), "soft:cores=%d,memory=64M,variant=%s", cores, variant);
	ck_assert_msg(!embeng_open(name, m, &s.e, &error), "%s", error.text);
	embeng_model_free(m);
	s.batch = embeng_batch_new(s.e, EMBENG_TRAIN, 0);
	return s;
}

static void stop(struct session *s)
{
	embeng_batch_free(s->batch);
	embeng_close(s->e);
}

/* One step of bags 0 {0, 1} and 1 {2, 3}, row 4 alone; every gradient is @g. Return: activations. */
static void train(struct session *s, const float weights[5], float g, float out[3])
{
	const int64_t ids[] = {0, 1, 2, 3, 4}, lengths[] = {2, 2, 1};
	struct embeng_activations a = {.size = sizeof(a)};
	float gradients[3 * DIM];
	const float *features[] = {gradients};

	ck_assert_int_eq(
		embeng_batch_ragged(s->batch, 0, EMBENG_I64, ids, 5, lengths, 3, weights, 5), 0);
	ck_assert_int_eq(embeng_enqueue(s->e, s->batch, 0), 0);
	ck_assert_int_eq(embeng_dequeue(s->e, 0, -1, &a), 0);
	for (size_t i = 0; i < 3; i++)
		out[i] = a.features[0].data[i * DIM + DIM - 1];
	for (size_t i = 0; i < 3 * DIM; i++)
		gradients[i] = g;
	ck_assert_int_eq(embeng_apply_gradients(
				 s->e,
				 &(struct embeng_gradients){.size = sizeof(struct embeng_gradients),
							    .count = 1,
							    .features = features},
				 -1),
			 0);
}

static void expect_counts(struct session *s, uint64_t activations, uint64_t rows)
{
	struct embeng_table_stats stats = {.size = sizeof(stats)};

	ck_assert_int_eq(embeng_stats(s->e, 0, 1, &stats), 0);
	ck_assert_uint_eq(stats.nonfinite_activations, activations);
	ck_assert_uint_eq(stats.nonfinite_rows, rows);
	ck_assert_int_eq(embeng_stats(s->e, 0, 0, &stats), 0);
	ck_assert_uint_eq(stats.nonfinite_activations, 0);
	ck_assert_uint_eq(stats.nonfinite_rows, 0);
}

static void expect_rows(struct session *s, const float want[ROWS])
{
	float rows[ROWS * DIM];

	ck_assert_int_eq(embeng_rows_read(s->e, 0, NULL, NULL, ROWS, rows), 0);
	for (size_t i = 0; i < ROWS * DIM; i++)
		ck_assert_msg(fabsf(rows[i] - want[i / DIM]) <= 1e-6f, "row %zu: %g, not %g",
			      i / DIM, (double)rows[i], (double)want[i / DIM]);
}

/* Bags of tiny weights learn as those of 1, and neither a weight of 0 nor another bag is harmed. */
START_TEST(test_tiny_weights)
{
	static const float tiny[] = {1e-39f, 0x1p-149f, 0x1p-128f, 1.0f, FLT_MIN};
	const float want[] = {0.4f, 0.5f, 0.4f, 0.5f, 0.4f, 0.5f};
	const char *variant = kernel_variant(_i);
	float out[3];

	for (int combiner = EMBENG_MEAN; combiner <= EMBENG_SQRTN; combiner++) {
		if (combiner == EMBENG_SUM)
			continue;
		for (size_t i = 0; i < 5; i++) {
			const float weights[] = {tiny[i], 0, -0.0f, 3.0f, tiny[i]};
			const float signs[] = {tiny[i], 0, tiny[i], -0.0f, 0x1p126f};
			struct session s = start(variant, 2, combiner, embeng_sgd(0.1f));

			train(&s, signs, 1, out);
			for (size_t k = 0; k < 3; k++)
				ck_assert_msg(fabsf(out[k] - 0.5f) < 1e-6f, "%g", (double)out[k]);
			expect_rows(&s, want);
			train(&s, weights, 0, out);
			expect_rows(&s, want);
			expect_counts(&s, 0, 0);
			stop(&s);
		}
	}
}
END_TEST

/* Rows of inf from a rate; then they are seen in each bag that has one, and at each update. */
START_TEST(test_counts)
{
	const float ones[] = {1, 1, 1, 1, 1}, huge[] = {FLT_MAX, FLT_MAX, 1, 1, 0};
	const char *variant = kernel_variant(_i);
	float out[3];

	for (int cores = 1; cores <= 3; cores++) {
		struct session s = start(variant, cores, EMBENG_SUM, embeng_sgd(2));

		train(&s, ones, 1, out);
		expect_counts(&s, 0, 0);
		/* The sum of a lookup: 2 * FLT_MAX * -1.5. Rows 0 and 1 move by 2 * FLT_MAX. */
		train(&s, huge, 1, out);
		ck_assert(isinf(out[0]) && isfinite(out[1]) && isfinite(out[2]));
		expect_counts(&s, 1, 2);
		train(&s, ones, 0, out);
		expect_counts(&s, 1, 2);
		stop(&s);
	}
}
END_TEST

/* A slot overflows, and the row stays finite: that is counted, too. */
START_TEST(test_a_slot_is_counted)
{
	const float ones[] = {1, 1, 1, 1, 0};
	struct session s = start(kernel_variant(_i), 2, EMBENG_SUM, embeng_adagrad(0.5f));
	const float want[] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};
	float out[3];

	train(&s, ones, 0x1p70f, out);
	expect_rows(&s, want);
	expect_counts(&s, 0, 4);
	stop(&s);
}
END_TEST

static void add(TCase *tcase)
{
	add_variant_tests(tcase, test_tiny_weights, 1);
	add_variant_tests(tcase, test_counts, 1);
	add_variant_tests(tcase, test_a_slot_is_counted, 1);
}

int main(void)
{
	return suite_main("nonfinite", add);
}
