// SPDX-License-Identifier: MIT
/* Activations and rows have the same bits whatever the plan is, with every kernel variant. */
#include <stdio.h>
#include <string.h>

#include "random_table.h"
#include "session_help.h"
#include "variants.h"

#define ROWS 3000 /* times 100 floats: more than any second cache keeps to itself */
#define SAMPLES 512
#define BAG 9
#define IDS (SAMPLES * BAG)
#define STEPS 3
#define TABLES 3

static const int64_t dims[TABLES] = {8, 64, 100};

/* The plan "default" is the first, to which the others are compared. */
static const char *const plans[] = {"default", "1",	    "256",     "1:l1",	   "256:l1",
				    "1:touch", "256:touch", "1:burst", "256:burst"};

struct outcome {
	float *activations[TABLES], *rows[TABLES];
};

static struct embeng *open_plan(const char *variant, const char *plan)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;
	char name[96];

	for (int t = 0; t < TABLES; t++) {
		const struct embeng_table_config table = {
			.size = sizeof(table),
			.vocabulary_size = ROWS * 100 / dims[t],
			.dim = dims[t],
			.optimizer = {.size = sizeof(struct embeng_optimizer),
				      .kind = EMBENG_ADAGRAD,
				      .learning_rate = 0.1f,
				      .initial_accumulator_value = 0.1f}};
		const struct embeng_feature_config feature = {.size = sizeof(feature), .table = t};

		ck_assert_int_ge(embeng_model_add_table(m, &table), 0);
		ck_assert_int_ge(embeng_model_add_feature(m, &feature), 0);
	}
	snprintf(name, sizeof(name), "soft:cores=2,variant=%s,prefetch=%s", variant, plan);
	ck_assert_msg(!embeng_open(name, m, &e, &error), "%s: %s", name, error.text);
	embeng_model_free(m);
	return e;
}

static void train_step(struct embeng *e, struct drawing *d, struct outcome *out)
{
	static int64_t ids[IDS], lengths[SAMPLES];
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	float *features[TABLES];
	size_t elements[TABLES];
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = TABLES,
				     .features = (const float *const *)features,
				     .elements = elements};

	for (int t = 0; t < TABLES; t++) {
		for (int i = 0; i < IDS; i++)
			ids[i] = draw_below(d, (u32)(ROWS * 100 / dims[t]));
		for (int s = 0; s < SAMPLES; s++)
			lengths[s] = BAG;
		ck_assert_int_eq(
			embeng_batch_ragged(b, t, EMBENG_I64, ids, IDS, lengths, SAMPLES, NULL, 0),
			0);
	}
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	embeng_batch_free(b);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (int t = 0; t < TABLES; t++) {
		elements[t] = (size_t)(SAMPLES * dims[t]);
		features[t] = malloc(elements[t] * sizeof(float));
		memcpy(out->activations[t], a.features[t].data, elements[t] * sizeof(float));
		for (size_t i = 0; i < elements[t]; i++)
			features[t][i] = draw_gradient(d);
	}
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	for (int t = 0; t < TABLES; t++)
		free(features[t]);
}

static struct outcome train_plan(const char *variant, const char *plan)
{
	struct embeng *e = open_plan(variant, plan);
	struct drawing d = {0};
	struct outcome out;

	for (int t = 0; t < TABLES; t++) {
		const int64_t count = ROWS * 100 / dims[t];

		out.activations[t] = malloc(SAMPLES * (size_t)dims[t] * sizeof(float));
		out.rows[t] = malloc((size_t)(count * dims[t]) * sizeof(float));
		for (int64_t i = 0; i < count * dims[t]; i++)
			out.rows[t][i] = draw_gradient(&d);
		ck_assert_int_eq(embeng_rows_write(e, t, NULL, NULL, count, out.rows[t]), 0);
	}
	for (int step = 0; step < STEPS; step++)
		train_step(e, &d, &out);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	for (int t = 0; t < TABLES; t++)
		ck_assert_int_eq(
			embeng_rows_read(e, t, NULL, NULL, ROWS * 100 / dims[t], out.rows[t]), 0);
	embeng_close(e);
	return out;
}

static void free_outcome(struct outcome *out)
{
	for (int t = 0; t < TABLES; t++) {
		free(out->activations[t]);
		free(out->rows[t]);
	}
}

static void expect_same(const struct outcome *a, const struct outcome *b, const char *variant,
			const char *plan)
{
	for (int t = 0; t < TABLES; t++) {
		const size_t row = (size_t)dims[t] * sizeof(float);

		ck_assert_msg(!memcmp(a->activations[t], b->activations[t], SAMPLES * row),
			      "%s, %s: activations of table %d", variant, plan, t);
		ck_assert_msg(!memcmp(a->rows[t], b->rows[t], (size_t)(ROWS * 100 / dims[t]) * row),
			      "%s, %s: rows of table %d", variant, plan, t);
	}
}

START_TEST(no_result_depends_on_the_plan)
{
	struct outcome want = train_plan("portable", plans[0]);
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		for (size_t p = 0; p < sizeof(plans) / sizeof(plans[0]); p++) {
			struct outcome out = train_plan(ops->name, plans[p]);

			expect_same(&out, &want, ops->name, plans[p]);
			free_outcome(&out);
		}
	}
	free_outcome(&want);
}
END_TEST

RUN_SUITE("fetch_tables", no_result_depends_on_the_plan)
