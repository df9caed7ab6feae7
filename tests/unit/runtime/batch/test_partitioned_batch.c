// SPDX-License-Identifier: MIT
/*
 * embeng_batch_partitioned(): what it looks up and updates is what the batch itself does, but for
 * the order of sums. test_partitioned_refused.c has what it may not be.
 */
#include <math.h>
#include <unistd.h>

#include "preprocess_help.h"
#include "suite.h"
#include "embeng/preprocess.h"
#include "embeng/profile.h"

#define MOST_FLOATS (300 * 20)

/* Rows above 0, so that a sum is the sum of its magnitudes. */
static void write_rows(struct embeng *e)
{
	static float rows[MOST_FLOATS];
	uint64_t state = 99;

	for (int t = 0; t < TABLES; t++) {
		int64_t floats = table_specs[t].rows * table_specs[t].dim;

		for (int64_t i = 0; i < floats; i++)
			rows[i] = 0.25f + (float)draw(&state, 1 << 20) / (float)(1 << 18);
		ck_assert_int_eq(
			embeng_rows_write(e, t, NULL, NULL, (size_t)table_specs[t].rows, rows), 0);
	}
}

static struct embeng *engine_new(void)
{
	struct embeng *e = opened(whole_model());

	write_rows(e);
	return e;
}

/* 4 ulp of a sum of magnitudes. */
static void assert_close(float got, float want, float magnitude)
{
	ck_assert_msg(fabsf(got - want) <= 4.0f * ldexpf(magnitude, -23), "%.9g, not %.9g",
		      (double)got, (double)want);
}

static void step(struct embeng *e, struct embeng_batch *b, struct embeng_activations *a)
{
	static float ones[SAMPLES * 20];
	const float *features[FEATURES];
	size_t elements[FEATURES];
	struct embeng_gradients g = {
		.size = sizeof(g), .count = FEATURES, .features = features, .elements = elements};

	for (int i = 0; i < SAMPLES * 20; i++)
		ones[i] = -0.3f - (float)i / 64.0f;
	for (int f = 0; f < FEATURES; f++) {
		features[f] = ones;
		elements[f] = (size_t)(feature_specs[f].samples *
				       table_specs[feature_specs[f].table].dim);
	}
	*a = (struct embeng_activations){.size = sizeof(*a)};
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, a), 0);
	ck_assert_int_eq(embeng_apply_gradients(e, &g, -1), 0);
}

static void compare_tables(struct embeng *e, struct embeng *plain)
{
	static float got[MOST_FLOATS], want[MOST_FLOATS];

	for (int t = 0; t < TABLES; t++) {
		size_t rows = (size_t)table_specs[t].rows;

		ck_assert_int_eq(embeng_rows_read(e, t, NULL, NULL, rows, got), 0);
		ck_assert_int_eq(embeng_rows_read(plain, t, NULL, NULL, rows, want), 0);
		/* Gradients are below 0, so rows are sums of magnitudes again. */
		for (size_t i = 0; i < rows * (size_t)table_specs[t].dim; i++)
			assert_close(got[i], want[i], want[i]);
	}
}

static void compare_activations(const struct embeng_activations *got,
				const struct embeng_activations *want)
{
	for (int f = 0; f < FEATURES; f++) {
		size_t count = (size_t)(feature_specs[f].samples *
					table_specs[feature_specs[f].table].dim);
		const float *x = got->features[f].data, *y = want->features[f].data;

		ck_assert_uint_eq(got->features[f].rank, want->features[f].rank);
		for (size_t i = 0; i < count; i++)
			assert_close(x[i], y[i], y[i]);
		/* One id of weight 1: the same bits. */
		if (f % 3 == 0)
			ck_assert_mem_eq(x, y, 4 * count);
	}
}

static void train_both_ways(enum embeng_partition_flavour flavour, uint64_t seed, int minibatching)
{
	const struct embeng_stack_limits limits[] = {
		{12, 12, 0}, {12, 12, 0}, {12, 12, 0}, {1, 1, 0}};
	const struct embeng_preprocess_options o = {.size = sizeof(o),
						    .minibatching = minibatching,
						    .limits = minibatching ? limits : NULL,
						    .bucket = EMBENG_PARTITION_BUCKET_MOD};
	struct embeng_stacking *s = stacking_of(flavour);
	struct embeng *e = engine_new(), *plain = engine_new();
	struct embeng_batch *b = embeng_batch_new(e, EMBENG_TRAIN, 0), *whole;
	struct embeng_preprocessed *p = NULL;
	struct embeng_activations got, want;
	struct ids ids;

	draw_ids(&ids, seed);
	whole = embeng_batch_new(plain, EMBENG_TRAIN, 0);
	for (int f = 0; f < FEATURES; f++)
		put_input(whole, &ids, f, f);
	ck_assert_int_eq(embeng_preprocess(plain, whole, s, &o, &p), 0);
	/* The inputs that the batch had before are gone. */
	put_input(b, &ids, 0, 0);
	ck_assert_int_eq(embeng_batch_partitioned(b, s, p), 0);
	/* It was copied. */
	embeng_preprocessed_free(p);
	step(e, b, &got);
	step(plain, whole, &want);
	compare_activations(&got, &want);
	compare_tables(e, plain);
	embeng_batch_free(b);
	embeng_batch_free(whole);
	embeng_close(e);
	embeng_close(plain);
	embeng_stacking_free(s);
}

START_TEST(trains_as_the_batch_does)
{
	for (uint64_t seed = 40; seed < 46; seed++) {
		train_both_ways(EMBENG_PARTITION_TF, seed, 0);
		train_both_ways(EMBENG_PARTITION_JAX, seed, 0);
		train_both_ways(EMBENG_PARTITION_TF, seed, 1);
		train_both_ways(EMBENG_PARTITION_JAX, seed, 1);
	}
}
END_TEST

/* Ids that were dropped to keep within limits are not looked up: a sample without ids is zero. */
START_TEST(dropped_ids)
{
	const struct embeng_stack_limits limits[] = {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}};
	const struct embeng_preprocess_options o = {
		.size = sizeof(o), .allow_id_dropping = 1, .limits = limits};
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_TF);
	struct embeng *e = engine_new();
	struct embeng_batch *b;
	struct embeng_preprocessed *p = NULL;
	struct embeng_activations a = {.size = sizeof(a)};
	struct ids ids;
	size_t zeros = 0;

	draw_ids(&ids, 3);
	b = whole_batch(e, &ids);
	ck_assert_int_eq(embeng_preprocess(e, b, s, &o, &p), 0);
	ck_assert_uint_gt(p->stacks[1].dropped_ids, 0);
	ck_assert_int_eq(embeng_batch_partitioned(b, s, p), 0);
	ck_assert_int_eq(embeng_enqueue(e, b, -1), 0);
	ck_assert_int_eq(embeng_dequeue(e, 0, -1, &a), 0);
	for (size_t i = 0; i < SAMPLES; i++)
		zeros += a.features[0].data[12 * i] == 0.0f;
	/* 2 cores and 4 partitions keep 8 items at most, shared by 16 samples. */
	ck_assert_uint_gt(zeros, 0);
	ck_assert_int_eq(embeng_release(e, &a), 0);
	embeng_preprocessed_free(p);
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
}
END_TEST

/* A profile counts the same ids for a batch and for the partitioned CSR that was made from it. */
START_TEST(profiles_as_the_batch_does)
{
	const struct embeng_profile_options o = {.size = sizeof(o), .rate = 1};
	struct embeng_profile_counts got = {.size = sizeof(got)}, want = got;
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_JAX);
	struct embeng *e = engine_new();
	struct embeng_profile *p[2] = {NULL};
	struct embeng_preprocessed *made = NULL;
	char folder[] = "/tmp/embeng-profile-XXXXXX"; /* nothing is saved */
	struct embeng_batch *b;
	struct ids ids;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	draw_ids(&ids, 77);
	for (int f = 0; f < FEATURES; f++) /* no id twice in a sample, so that none are merged */
		for (size_t k = 0; k < ids.counts[f]; k++)
			ids.ids[f][k] = (ids.ids[f][0] + 4 * (int64_t)k) %
					(table_specs[feature_specs[f].table].rows - 1);
	b = whole_batch(e, &ids);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(embeng_profile_open(folder, embeng_get_model(e), &o, &p[i], NULL),
				 0);
		ck_assert_int_eq(embeng_profile_note(p[i], b), 1);
		if (i)
			break;
		ck_assert_int_eq(embeng_preprocess(e, b, s, NULL, &made), 0);
		ck_assert_int_eq(embeng_batch_partitioned(b, s, made), 0);
	}
	for (size_t t = 0; t < TABLES; t++) {
		ck_assert_int_eq(embeng_profile_counts(p[0], t, &want), 0);
		ck_assert_int_eq(embeng_profile_counts(p[1], t, &got), 0);
		ck_assert_uint_eq(got.ids, want.ids);
		ck_assert_uint_eq(got.hot_count, want.hot_count);
		ck_assert_mem_eq(got.hot, want.hot, got.hot_count * sizeof(got.hot[0]));
	}
	for (int i = 0; i < 2; i++)
		embeng_profile_close(p[i]);
	rmdir(folder);
	embeng_preprocessed_free(made);
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
}
END_TEST

static double norm_of(struct embeng *e, struct embeng_batch *b, double tables[TABLES])
{
	static float from[SAMPLES * 20];
	const float *features[FEATURES];
	const struct embeng_gradients g = {
		.size = sizeof(g), .count = FEATURES, .features = features};
	const struct embeng_gradients *gradients[] = {&g};
	struct embeng_gradient_norms norms = {
		.size = sizeof(norms), .tables = tables, .table_count = TABLES};

	for (int i = 0; i < SAMPLES * 20; i++)
		from[i] = sinf((float)i);
	for (int f = 0; f < FEATURES; f++)
		features[f] = from;
	ck_assert_int_eq(embeng_gradient_norm(e, &b, gradients, 1, &norms), 0);
	return norms.norm;
}

/* Gains are f32, and the items of a sample are in another order. */
static void compare_norms(enum embeng_partition_flavour flavour, uint64_t seed)
{
	struct embeng_stacking *s = stacking_of(flavour);
	double plain[TABLES], stacked[TABLES], all;
	struct embeng_preprocessed *made = NULL;
	struct embeng *e = engine_new();
	struct embeng_batch *b;
	struct ids ids;

	draw_ids(&ids, seed);
	b = whole_batch(e, &ids);
	all = norm_of(e, b, plain);
	ck_assert_int_eq(embeng_preprocess(e, b, s, NULL, &made), 0);
	ck_assert_int_eq(embeng_batch_partitioned(b, s, made), 0);
	ck_assert_double_gt(all, 1);
	ck_assert_double_eq_tol(norm_of(e, b, stacked), all, 1e-6 * all);
	for (int t = 0; t < TABLES; t++)
		ck_assert_double_eq_tol(stacked[t], plain[t], 1e-6 * all);
	embeng_preprocessed_free(made);
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
}

START_TEST(norms_are_those_of_the_batch)
{
	for (uint64_t seed = 80; seed < 90; seed++)
		compare_norms(seed % 2 ? EMBENG_PARTITION_TF : EMBENG_PARTITION_JAX, seed);
}
END_TEST

/* Cores of one stack that have the same items: the engine refuses them, and no item counts twice. */
START_TEST(items_of_two_cores_count_once)
{
	struct embeng_stacking *s = stacking_of(EMBENG_PARTITION_JAX);
	struct embeng_preprocessed *made = NULL;
	double once[TABLES], twice[TABLES], all;
	struct embeng *e = engine_new();
	struct embeng_batch *b;
	struct ids ids;

	draw_ids(&ids, 9);
	b = whole_batch(e, &ids);
	ck_assert_int_eq(embeng_preprocess(e, b, s, NULL, &made), 0);
	for (int i = 0; i < 2; i++) {
		for (size_t k = 0; k < made->stack_count; k++) {
			const struct embeng_partitioned *p = &made->stacks[k];
			size_t half = p->row_pointer_count / 2;

			if (!half)
				continue;

			/* First core 1 has no items, then those of core 0. */
			p->core_first[1] = p->core_first[0];
			p->core_end[1] = i ? p->core_end[0] : p->core_first[1];
			for (size_t r = 0; r < half; r++)
				p->row_pointers[half + r] = i ? p->row_pointers[r] : 0;
		}
		ck_assert_int_eq(embeng_batch_partitioned(b, s, made), 0);
		all = norm_of(e, b, i ? twice : once);
		ck_assert_double_gt(all, 1);
	}
	ck_assert_mem_eq(once, twice, sizeof(once));
	ck_assert_int_lt(embeng_enqueue(e, b, -1), 0);
	embeng_preprocessed_free(made);
	embeng_batch_free(b);
	embeng_close(e);
	embeng_stacking_free(s);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, norms_are_those_of_the_batch);
	tcase_add_test(tcase, items_of_two_cores_count_once);
	tcase_add_test(tcase, trains_as_the_batch_does);
	tcase_add_test(tcase, dropped_ids);
	tcase_add_test(tcase, profiles_as_the_batch_does);
}

int main(void)
{
	return suite_main("partitioned batch", add);
}
