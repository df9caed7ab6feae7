// SPDX-License-Identifier: MIT
/*
 * Expected numbers of different rows are compared with sums over all rows one by one, and with ids that
 * were drawn.
 */
#include <math.h>

#include "embeng/shard.h"
#include "plan/popularity.h"
#include "test_model.h"

/* 1 - (1 - p)^n of each row of a Zipf law, by its definition. */
struct brute {
	uint64_t rows;
	double *p;
};

static struct brute brute_new(uint64_t rows, double zipf)
{
	struct brute b = {rows, malloc(rows * sizeof(double))};
	double sum = 0.0;

	for (uint64_t r = 0; r < rows; r++)
		sum += b.p[r] = pow((double)r + 1.0, -zipf);
	for (uint64_t r = 0; r < rows; r++)
		b.p[r] /= sum;
	return b;
}

static struct spread spread_new(uint32_t hosts)
{
	return (struct spread){hosts, calloc(hosts, sizeof(double)), calloc(hosts, sizeof(double))};
}

static void spread_free(struct spread *s)
{
	free(s->unique);
	free(s->ids);
}

static double sum_of(const double *x, uint32_t count)
{
	double sum = 0.0;

	for (uint32_t i = 0; i < count; i++)
		sum += x[i];
	return sum;
}

static void assert_near(double got, double want, double part)
{
	ck_assert_msg(fabs(got - want) <= part * fabs(want) + 1e-12, "%.17g, expected %.17g", got,
		      want);
}

static double unique_of(uint64_t rows, double zipf, uint64_t ids)
{
	const struct popularity law = {.rows = rows, .zipf = zipf};
	struct spread s = spread_new(1);
	double unique;

	ck_assert_int_eq(popularity_spread(&law, ids, EMBENG_SHARDING_MOD, &s), 0);
	unique = s.unique[0];
	assert_near(s.ids[0], 1.0, 1e-12);
	spread_free(&s);
	return unique;
}

START_TEST(hosts_have_what_their_rows_have)
{
	static const uint64_t rows[] = {1, 5, 64, 5000, 20000};
	static const uint32_t hosts[] = {1, 2, 7, 64, 4096};
	static const double zipf[] = {0.0, 0.6, 1.0, 1.05, 2.0};
	static const enum embeng_sharding kinds[] = {EMBENG_SHARDING_MOD, EMBENG_SHARDING_DIV};
	const uint64_t n = 3000;
	const uint32_t h = hosts[_i % 5];
	const double s = zipf[_i / 5];

	for (size_t k = 0; k < COUNT(rows) * 2; k++) {
		const struct popularity law = {.rows = rows[k / 2], .zipf = s};
		struct brute b = brute_new(law.rows, s);
		struct spread got = spread_new(h), want = spread_new(h);

		for (uint64_t r = 0; r < law.rows; r++) {
			const struct embeng_shard shard = EMBENG_INIT(
				embeng_shard, .sharding = kinds[k % 2], .hosts = h);
			uint32_t owner;
			int64_t place;

			ck_assert_int_eq(embeng_shard_find(&shard, (int64_t)law.rows, (int64_t)r,
							   &owner, &place),
					 0);
			want.unique[owner] += 1.0 - pow(1.0 - b.p[r], (double)n);
			want.ids[owner] += b.p[r];
		}
		ck_assert_int_eq(popularity_spread(&law, n, kinds[k % 2], &got), 0);
		for (uint32_t o = 0; o < h; o++) {
			assert_near(got.unique[o], want.unique[o], 2e-2);
			assert_near(got.ids[o], want.ids[o], 2e-2);
		}
		assert_near(sum_of(got.unique, h), sum_of(want.unique, h), 1e-5);
		assert_near(sum_of(got.ids, h), 1.0, 1e-9);
		free(b.p);
		spread_free(&got);
		spread_free(&want);
	}
}
END_TEST

START_TEST(uniform_by_hand)
{
	assert_near(unique_of(100, 0.0, 1000), 100.0 * (1.0 - pow(0.99, 1000)), 1e-12);
	assert_near(unique_of(1, 0.0, 1), 1.0, 1e-12);
	assert_near(unique_of(1000, 1.05, 0), 0.0, 1e-12);
	assert_near(unique_of(10000000000, 0.0, 1), 1.0, 1e-6);
}
END_TEST

/* The workloads whose unique shares docs/performance.md has measured. */
START_TEST(shares_that_were_measured)
{
	static const struct {
		uint64_t rows, ids;
		double zipf, share;
	} measured[] = {
		{1000000, 4096 * 20, 0.0, 0.96},
		{1000000, 4096 * 20, 1.05, 0.32},
		{16000000, 16384 * 50, 1.05, 0.28},
		{4000000, 1024 * 128, 0.0, 0.98},
	};

	for (size_t i = 0; i < COUNT(measured); i++) {
		const double share = unique_of(measured[i].rows, measured[i].zipf,
					       measured[i].ids) /
				     (double)measured[i].ids;

		ck_assert_msg(fabs(share - measured[i].share) < 0.006, "%zu: %g", i, share);
	}
}
END_TEST

static uint64_t mix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* A row by the sums of probabilities. */
static uint64_t draw_row(const double *sums, uint64_t rows, uint64_t *state)
{
	const double x = (double)(mix(state) >> 11) * 0x1p-53;
	uint64_t low = 0, high = rows - 1;

	while (low < high) {
		const uint64_t middle = (low + high) / 2;

		if (sums[middle] > x)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

enum { DRAWN_ROWS = 50000, DRAWS = 100000 };

static uint64_t *draw_counts(double zipf)
{
	struct brute b = brute_new(DRAWN_ROWS, zipf);
	uint64_t *counts = calloc(DRAWN_ROWS, sizeof(*counts)), state = 7;

	for (uint64_t r = 1; r < DRAWN_ROWS; r++)
		b.p[r] += b.p[r - 1];
	for (int i = 0; i < DRAWS; i++)
		counts[draw_row(b.p, DRAWN_ROWS, &state)]++;
	free(b.p);
	return counts;
}

START_TEST(as_many_as_are_drawn)
{
	static const double zipf[] = {0.0, 0.8, 1.05, 1.5};
	uint64_t *counts = draw_counts(zipf[_i]), unique = 0;

	for (uint64_t r = 0; r < DRAWN_ROWS; r++)
		unique += counts[r] > 0;
	assert_near(unique_of(DRAWN_ROWS, zipf[_i], DRAWS), (double)unique, 0.01);
	free(counts);
}
END_TEST

/* A profile of the most frequent rows, under numbers that say nothing of their frequency. */
START_TEST(a_profile_tells_the_others)
{
	static const double zipf[] = {0.8, 1.05, 1.5};
	struct embeng_profile_counts counts = EMBENG_INIT(embeng_profile_counts, .batches = 1,
							  .hot_count = EMBENG_PROFILE_HOT);
	struct popularity law = {.rows = DRAWN_ROWS, .counts = &counts};
	uint64_t *drawn = draw_counts(zipf[_i]);
	struct spread s = spread_new(8);

	for (size_t i = 0; i < EMBENG_PROFILE_HOT; i++) {
		counts.hot[i].row = (int64_t)(i * 7919 % DRAWN_ROWS);
		counts.hot[i].count = drawn[i];
	}
	counts.ids = DRAWS;
	law.zipf = popularity_fit(DRAWN_ROWS, &counts);
	assert_near(law.zipf, zipf[_i], 0.02);
	ck_assert_int_eq(popularity_spread(&law, 20000, EMBENG_SHARDING_MOD, &s), 0);
	assert_near(sum_of(s.unique, 8), unique_of(DRAWN_ROWS, zipf[_i], 20000), 0.03);
	assert_near(sum_of(s.ids, 8), 1.0, 1e-9);
	free(drawn);
	spread_free(&s);
}
END_TEST

START_TEST(a_profile_of_all_rows)
{
	struct embeng_profile_counts counts = EMBENG_INIT(embeng_profile_counts, .batches = 2,
							  .ids = 10, .hot_count = 2);
	struct popularity law = {.rows = 2, .counts = &counts};
	struct spread s = spread_new(2);

	counts.hot[0].row = 1;
	counts.hot[0].count = 9;
	counts.hot[1].row = 0;
	counts.hot[1].count = 1;
	law.zipf = popularity_fit(2, &counts);
	ck_assert_int_eq(popularity_spread(&law, 3, EMBENG_SHARDING_MOD, &s), 0);
	assert_near(s.unique[0], 1.0 - pow(0.9, 3), 1e-12);
	assert_near(s.unique[1], 1.0 - pow(0.1, 3), 1e-12);
	assert_near(s.ids[1], 0.9, 1e-12);
	spread_free(&s);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, hosts_have_what_their_rows_have, 0, 25);
	tcase_add_test(tcase, uniform_by_hand);
	tcase_add_test(tcase, shares_that_were_measured);
	tcase_add_loop_test(tcase, as_many_as_are_drawn, 0, 4);
	tcase_add_loop_test(tcase, a_profile_tells_the_others, 0, 3);
	tcase_add_test(tcase, a_profile_of_all_rows);
}

int main(void)
{
	return suite_main("popularity", add_tests);
}
