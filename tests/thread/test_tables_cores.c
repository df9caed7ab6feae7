// SPDX-License-Identifier: MIT
/*
 * Steps of many tables, of which cores take the small ones whole and the large one together: the
 * same bits for any number of cores. Optimizers are of every kind that a table's rows go through:
 * summed, occurrence by occurrence, and with the rows that no id names.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/include/embeng.h"
#include "suite.h"

#define TABLES 9
#define FEATURES 10 /* the last table has two */
#define ROWS 3000
#define STEPS 3
#define HOT 5000 /* occurrences of row 7 in table 1, more than a kernel takes at once */

static const int dims[TABLES] = {64, 16, 5, 32, 1, 64, 16, 128, 8};

static int samples_of(int feature)
{
	return feature == 0 ? 60000 : feature == 1 ? 2 * HOT : 700 * feature;
}

static int table_of(int feature)
{
	return feature < TABLES ? feature : TABLES - 1;
}

static struct embeng_optimizer optimizer_of(int table)
{
	struct embeng_optimizer o = table % 3 == 0   ? embeng_adagrad(0.1f)
				    : table % 3 == 1 ? embeng_sgd(0.1f)
						     : embeng_adam(0.1f);

	if (table == 3)
		o.use_gradient_accumulation = EMBENG_OFF;
	if (table == 5)
		o.lazy_adam = EMBENG_OFF;
	return o;
}

static struct embeng *open_tables(int cores)
{
	struct embeng_model *m = embeng_model_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng *e = NULL;
	char name[16], device[64];

	for (int t = 0; t < TABLES; t++) {
		struct embeng_table_config table = {
			.size = sizeof(table),
			.name = name,
			.vocabulary_size = ROWS,
			.dim = dims[t],
			.optimizer = optimizer_of(t),
			.initializer = {EMBENG_INIT_UNIFORM, -0.05, 0.05, (uint64_t)t + 1}};

		snprintf(name, sizeof(name), "t%d", t);
		ck_assert_int_eq(embeng_model_add_table(m, &table), t);
	}
	for (int f = 0; f < FEATURES; f++) {
		struct embeng_feature_config feature = {
			.size = sizeof(feature), .name = name, .table = table_of(f)};

		snprintf(name, sizeof(name), "f%d", f);
		ck_assert_int_eq(embeng_model_add_feature(m, &feature), f);
	}
	snprintf(device, sizeof(device), "soft:cores=%d,memory=256M", cores);
	ck_assert_msg(!embeng_open(device, m, &e, &error), "%s", error.text);
	embeng_model_free(m);
	return e;
}

static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void look_up(struct embeng *e, uint64_t *state)
{
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0);
	struct embeng_activations a = {.size = sizeof(a)};
	int64_t *ids[FEATURES];

	for (int f = 0; f < FEATURES; f++) {
		const int64_t samples = samples_of(f);

		ids[f] = calloc((size_t)samples, sizeof(*ids[f]));
		for (int64_t i = 0; i < samples; i++)
			ids[f][i] = f == 1 && i % 2 ? 7 : draw(state) % ROWS;
		ck_assert_int_eq(
			embeng_batch_dense(b, f, EMBENG_I64, ids[f], (size_t)samples, &samples, 1),
			0);
	}
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	embeng_batch_free(b);
	for (int f = 0; f < FEATURES; f++)
		free(ids[f]);
}

static void apply(struct embeng *e, uint64_t *state)
{
	float *features[FEATURES];
	size_t elements[FEATURES];
	struct embeng_gradients g = {.size = sizeof(g),
				     .count = FEATURES,
				     .features = (const float *const *)features,
				     .elements = elements};

	for (int f = 0; f < FEATURES; f++) {
		elements[f] = (size_t)samples_of(f) * (size_t)dims[table_of(f)];
		features[f] = calloc(elements[f], sizeof(float));
		for (size_t i = 0; i < elements[f]; i++)
			features[f][i] = (float)(int32_t)draw(state) * 0x1p-30f - 1;
	}
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
	ck_assert_int_eq(embeng_flush(e, -1), 0);
	for (int f = 0; f < FEATURES; f++)
		free(features[f]);
}

/* The rows and statistics of all tables after the last step. */
struct outcome {
	float *rows[TABLES];
	struct embeng_table_stats stats[TABLES];
};

static struct outcome train(int cores)
{
	struct embeng *e = open_tables(cores);
	struct outcome out = {0};
	uint64_t state = 1;

	for (int step = 0; step < STEPS; step++) {
		look_up(e, &state);
		apply(e, &state);
	}
	for (int t = 0; t < TABLES; t++) {
		out.rows[t] = calloc((size_t)ROWS * (size_t)dims[t], sizeof(float));
		out.stats[t].size = sizeof(out.stats[t]);
		ck_assert_int_eq(embeng_rows_read(e, t, NULL, NULL, ROWS, out.rows[t]), 0);
		ck_assert_int_eq(embeng_stats(e, t, 0, &out.stats[t]), 0);
	}
	embeng_close(e);
	return out;
}

static void drop(struct outcome *out)
{
	for (int t = 0; t < TABLES; t++)
		free(out->rows[t]);
}

START_TEST(same_bits_on_any_cores)
{
	static const int cores[] = {2, 3, 8};
	struct outcome one = train(1), many = train(cores[_i]);

	for (int t = 0; t < TABLES; t++) {
		const struct embeng_table_stats *a = &one.stats[t], *b = &many.stats[t];

		ck_assert_msg(!memcmp(one.rows[t], many.rows[t], 4ul * ROWS * (size_t)dims[t]),
			      "table %d differs on %d cores", t, cores[_i]);
		ck_assert_uint_eq(a->steps, STEPS);
		ck_assert_uint_eq(b->steps, STEPS);
		ck_assert_uint_eq(a->ids, b->ids);
		ck_assert_uint_eq(a->unique_ids, b->unique_ids);
		ck_assert_uint_eq(a->updated_rows, b->updated_rows);
		ck_assert_uint_eq(a->untouched_rows, b->untouched_rows);
		ck_assert_uint_eq(b->untouched_rows > 0, t == 5);
	}
	drop(&one);
	drop(&many);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, same_bits_on_any_cores, 0, 3);
}

int main(void)
{
	return suite_main("tables_cores", add);
}
