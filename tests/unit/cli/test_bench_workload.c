// SPDX-License-Identifier: MIT
/*
 * Workloads of `embeng bench`: ids follow the distribution of the workload, and are the same in
 * each run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/bench/workload.h"
#include "suite.h"

#define SEED 20240229
#define DRAWS 400000

static int64_t *draw(const char *name, double scale, int batch, uint64_t seed,
		     struct bench_workload *w, size_t count)
{
	int64_t *ids = malloc(count * sizeof(*ids));

	ck_assert_ptr_nonnull(ids);
	*w = bench_workload_scaled(&bench_workloads[bench_workload_find(name)], scale);
	bench_draw(w, 0, batch, seed, ids, count);
	return ids;
}

static size_t *count_rows(const int64_t *ids, size_t count, int64_t rows)
{
	size_t *counts = calloc((size_t)rows, sizeof(*counts));

	ck_assert_ptr_nonnull(counts);
	for (size_t k = 0; k < count; k++) {
		ck_assert_int_ge(ids[k], 0);
		ck_assert_int_lt(ids[k], rows);
		counts[ids[k]]++;
	}
	return counts;
}

/* Within six deviations of the binomial law. */
static void expect_share(size_t count, size_t draws, double share, int64_t rank)
{
	double mean = share * (double)draws, deviation = sqrt(mean * (1 - share));

	ck_assert_msg(fabs((double)count - mean) <= 6 * deviation + 1,
		      "seed %d, rank %lld: %zu of %zu, expected %.1f +- %.1f", SEED,
		      (long long)rank, count, draws, mean, deviation);
}

static void expect_zipf(const char *name, double exponent)
{
	struct bench_workload w;
	int64_t *ids = draw(name, 0.001, 0, SEED, &w, DRAWS);
	size_t *counts = count_rows(ids, DRAWS, w.rows[0]);
	double sum = 0;

	ck_assert_double_eq(w.exponent, exponent);
	for (int64_t r = 0; r < w.rows[0]; r++)
		sum += pow((double)(r + 1), -exponent);
	for (int64_t r = 0; r < w.rows[0]; r++)
		expect_share(counts[r * 2654435761 % w.rows[0]], DRAWS,
			     pow((double)(r + 1), -exponent) / sum, r);
	free(counts);
	free(ids);
}

START_TEST(zipf_ranks_have_their_shares)
{
	expect_zipf("W2", 1.05);
	expect_zipf("W1-zipf1.2", 1.2);
}
END_TEST

START_TEST(uniform_rows_have_equal_shares)
{
	struct bench_workload w;
	int64_t *ids = draw("W1", 0.001, 0, SEED, &w, DRAWS);
	size_t *counts = count_rows(ids, DRAWS, 1000);

	ck_assert_int_eq(w.rows[0], 1000);
	for (int64_t r = 0; r < 1000; r++)
		expect_share(counts[r], DRAWS, 1e-3, r);
	free(counts);
	free(ids);
}
END_TEST

START_TEST(same_is_one_row)
{
	struct bench_workload w;
	int64_t *ids = draw("W1-same", 1, 0, SEED, &w, 1000);

	for (size_t k = 0; k < 1000; k++)
		ck_assert_int_eq(ids[k], 500000);
	free(ids);
}
END_TEST

static double first_of_list(void *arg)
{
	const double **next = arg;

	return *(*next)++;
}

/* The ends of the law: what rounds beyond them stays within. */
START_TEST(ranks_stay_within_the_table)
{
	const double ends[] = {0, 0x1.fffffffffffffp-1, 0, 0, 0x1.fffffffffffffp-1};
	const double *next = ends;

	ck_assert_int_eq(bench_zipf_rank(1000, 1.05, first_of_list, &next), 999);
	ck_assert_int_eq(bench_zipf_rank(1000, 1.05, first_of_list, &next), 0);
	ck_assert_int_eq(bench_zipf_rank(1, 1.05, first_of_list, &next), 0);
	ck_assert_int_eq(bench_zipf_rank(1000, 1, first_of_list, &next), 999);
	ck_assert_int_eq(bench_zipf_rank(1000, 1, first_of_list, &next), 0);
}
END_TEST

START_TEST(scattered_ranks_are_different_rows)
{
	struct bench_workload w;
	int64_t *ids = draw("W3", 1, 0, SEED, &w, DRAWS);
	size_t *counts = count_rows(ids, DRAWS, w.rows[0]), seen = 0;

	for (int64_t r = 0; r < w.rows[0]; r++)
		seen += counts[r] > 0;
	ck_assert_int_eq(w.rows[0], 1460);
	ck_assert_uint_eq(seen, 1460);
	free(counts);
	free(ids);
}
END_TEST

static void expect_differs(const int64_t *ids, int batch, int table, uint64_t seed)
{
	struct bench_workload w = bench_workloads[0];
	int64_t others[100];

	bench_draw(&w, table, batch, seed, others, 100);
	ck_assert_int_ne(memcmp(ids, others, sizeof(others)), 0);
}

START_TEST(draws_depend_on_seed_batch_and_table_alone)
{
	struct bench_workload w;
	int64_t *ids = draw("W1", 1, 2, SEED, &w, 100), *again = draw("W1", 1, 2, SEED, &w, 100);

	ck_assert_mem_eq(ids, again, 100 * sizeof(*ids));
	expect_differs(ids, 1, 0, SEED);
	expect_differs(ids, 2, 1, SEED);
	expect_differs(ids, 2, 0, SEED + 1);
	free(ids);
	free(again);
}
END_TEST

START_TEST(floats_are_within_zero_and_one)
{
	float values[1000], again[1000];
	double sum = 0;

	bench_draw_floats(SEED, 1, values, 1000);
	bench_draw_floats(SEED, 1, again, 1000);
	ck_assert_mem_eq(values, again, sizeof(values));
	for (int k = 0; k < 1000; k++) {
		ck_assert_float_ge(values[k], 0);
		ck_assert_float_lt(values[k], 1);
		sum += (double)values[k];
	}
	ck_assert_double_eq_tol(sum / 1000, 0.5, 0.06);
	bench_draw_floats(SEED, 2, again, 1000);
	ck_assert_int_ne(memcmp(values, again, sizeof(values)), 0);
}
END_TEST

/* Ids a step, and rows of all tables, as design and peer have them. */
START_TEST(workloads_are_as_large_as_they_say)
{
	static const struct {
		const char *name;
		uint64_t ids, rows;
		size_t elements;
	} expected[] = {
		{"W1", 655360, 8000000, 4096 * 64},	 {"W2", 655360, 8000000, 4096 * 64},
		{"W3", 53248, 15569309, 2048 * 128},	 {"W4", 819200, 16000000, 16384 * 32},
		{"W5", 131072, 4000000, 131072 * 128},	 {"W1-zipf1.2", 655360, 8000000, 4096 * 64},
		{"W1-same", 655360, 8000000, 4096 * 64},
	};

	for (size_t k = 0; k < BENCH_WORKLOADS; k++) {
		const struct bench_workload *w = &bench_workloads[k];
		uint64_t rows = 0;

		ck_assert_str_eq(w->name, expected[k].name);
		ck_assert_int_eq(bench_workload_find(w->name), (int)k);
		for (int t = 0; t < w->tables; t++)
			rows += (uint64_t)w->rows[t];
		ck_assert_uint_eq(rows, expected[k].rows);
		ck_assert_uint_eq(bench_step_ids(w), expected[k].ids);
		ck_assert_uint_eq(bench_elements(w), expected[k].elements);
	}
	ck_assert_int_eq(bench_workload_find("W9"), -1);
}
END_TEST

START_TEST(scaled_workloads_keep_a_row_and_whole_blocks_of_samples)
{
	struct bench_workload w = bench_workload_scaled(&bench_workloads[2], 0.01);

	ck_assert_int_eq(w.rows[0], 14);
	ck_assert_int_eq(w.rows[5], 1); /* unscaled: 24 */
	ck_assert_int_eq(w.samples, 16);
	w = bench_workload_scaled(&bench_workloads[2], 1e-6);
	ck_assert_int_eq(w.samples, 8);
	w = bench_workload_scaled(&bench_workloads[2], 1);
	ck_assert_mem_eq(w.rows, bench_workloads[2].rows, sizeof(w.rows));
	ck_assert_int_eq(w.samples, 2048);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, zipf_ranks_have_their_shares);
	tcase_add_test(tcase, uniform_rows_have_equal_shares);
	tcase_add_test(tcase, same_is_one_row);
	tcase_add_test(tcase, ranks_stay_within_the_table);
	tcase_add_test(tcase, scattered_ranks_are_different_rows);
	tcase_add_test(tcase, draws_depend_on_seed_batch_and_table_alone);
	tcase_add_test(tcase, floats_are_within_zero_and_one);
	tcase_add_test(tcase, workloads_are_as_large_as_they_say);
	tcase_add_test(tcase, scaled_workloads_keep_a_row_and_whole_blocks_of_samples);
}

int main(void)
{
	return suite_main("bench_workload", add);
}
