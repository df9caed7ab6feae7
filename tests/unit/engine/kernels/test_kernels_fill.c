// SPDX-License-Identifier: MIT
/*
 * Kernels that fill rows with random numbers: known answers of Philox, moments and limits of each
 * distribution, and independence of neighbouring rows.
 */
#include <check.h>
#include <math.h>

#include "engine/kernels/fill.h"
#include "engine/kernels/normal.h"
#include "engine/kernels/philox.h"
#include "suite.h"
#include "test_kernels.h"

#define ROWS 5000u
#define DIM 37u

static float filled[ROWS * DIM];

static struct kernel_fill fill_of(u32 kind, float a, float b)
{
	return (struct kernel_fill){.kind = kind,
				    .seed = 0x123456789abcdef0,
				    .dim = DIM,
				    .a = a,
				    .b = b,
				    .out = filled,
				    .stride = DIM,
				    .row_step = 1};
}

/* The known answers that come with Random123. */
START_TEST(test_philox_known_answers)
{
	static const struct {
		u32 counter[4], key[2], out[4];
	} known[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
		 {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
		 {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};

	for (u32 i = 0; i < 3; i++) {
		u32 out[4];

		philox4x32(known[i].counter, known[i].key, out);
		ck_assert_mem_eq(out, known[i].out, sizeof(out));
	}
}
END_TEST

START_TEST(test_constant)
{
	struct kernel_fill f = fill_of(KERNEL_FILL_CONSTANT, -0.125f, 0.0f);

	filled[9 * DIM - 1] = 7.0f;
	filled[10 * DIM] = 8.0f;
	kernel_fill_rows(&f, 9, 10);
	for (u32 c = 0; c < DIM; c++)
		ck_assert(filled[9 * DIM + c] == -0.125f);
	ck_assert(filled[9 * DIM - 1] == 7.0f);
	ck_assert(filled[10 * DIM] == 8.0f);
}
END_TEST

static void moments(double *mean, double *deviation, float *least, float *most)
{
	double sum = 0.0, squares = 0.0;

	*least = *most = filled[0];
	for (u32 i = 0; i < ROWS * DIM; i++) {
		sum += filled[i];
		squares += (double)filled[i] * filled[i];
		*least = fminf(*least, filled[i]);
		*most = fmaxf(*most, filled[i]);
	}
	*mean = sum / (ROWS * DIM);
	*deviation = sqrt(squares / (ROWS * DIM) - *mean * *mean);
}

START_TEST(test_uniform_moments_and_limits)
{
	struct kernel_fill f = fill_of(KERNEL_FILL_UNIFORM, -1.0f, 3.0f);
	double mean, deviation;
	float least, most;

	kernel_fill_rows(&f, 0, ROWS);
	moments(&mean, &deviation, &least, &most);
	ck_assert_double_eq_tol(mean, 1.0, 0.015);
	ck_assert_double_eq_tol(deviation, 4.0 / sqrt(12.0), 0.01);
	ck_assert(least >= -1.0f && least < -0.999f);
	ck_assert(most < 3.0f && most > 2.999f);
}
END_TEST

/* Two neighbours: half of the exact values round up to the excluded limit. */
START_TEST(test_uniform_never_reaches_its_upper_limit)
{
	static const float limits[][2] = {{1.0f, 1.0f + 0x1p-23f},
					  {-0x1p-149f, 0.0f},
					  {-1.0f - 0x1p-23f, -1.0f},
					  {2.0f, 2.0f}};

	for (u32 k = 0; k < 4; k++) {
		struct kernel_fill f = fill_of(KERNEL_FILL_UNIFORM, limits[k][0], limits[k][1]);

		kernel_fill_rows(&f, 0, 100);
		for (u32 i = 0; i < 100 * DIM; i++)
			ck_assert(filled[i] == limits[k][0]);
	}
}
END_TEST

START_TEST(test_truncated_normal_moments_and_limits)
{
	struct kernel_fill f = fill_of(KERNEL_FILL_TRUNCATED_NORMAL, 0.5f, 0.125f);
	double mean, deviation;
	float least, most;
	u32 within = 0;

	kernel_fill_rows(&f, 0, ROWS);
	moments(&mean, &deviation, &least, &most);
	ck_assert_double_eq_tol(mean, 0.5, 0.001);
	/* A standard normal cut at 2 has this standard deviation. */
	ck_assert_double_eq_tol(deviation, 0.125 * 0.879626, 0.0005);
	ck_assert(least >= 0.25f && least < 0.252f);
	ck_assert(most <= 0.75f && most > 0.748f);
	for (u32 i = 0; i < ROWS * DIM; i++)
		within += fabsf(filled[i] - 0.5f) <= 0.125f;
	ck_assert_double_eq_tol(within / (double)(ROWS * DIM), 0.682689 / 0.954500, 0.004);
}
END_TEST

START_TEST(test_quantile_inverts_the_distribution)
{
	for (u32 i = 0; i < 200000; i++) {
		double p = 1e-6 + (1.0 - 2e-6) * ((double)(random_u64() >> 11) * 0x1p-53);
		double x = normal_quantile(p);
		double back = 0.5 * erfc(-x / sqrt(2.0));

		ck_assert_double_eq_tol(back, p, 4e-16 + 2e-15 * p);
	}
	ck_assert(normal_quantile(0.5) == 0.0);
}
END_TEST

/* A row is the same alone, in a shard and in a whole table. */
START_TEST(test_rows_do_not_depend_on_their_neighbours)
{
	static float shard[ROWS * DIM];
	struct kernel_fill whole = fill_of(KERNEL_FILL_TRUNCATED_NORMAL, 0.0f, 1.0f);
	struct kernel_fill part = whole;

	kernel_fill_rows(&whole, 0, ROWS);
	part.out = shard;
	part.stride = DIM + 3;
	part.first_row = 2;
	part.row_step = 7;
	kernel_fill_rows(&part, 0, 600);
	for (u64 i = 0; i < 600; i++)
		ck_assert_mem_eq(shard + i * (DIM + 3), filled + (2 + 7 * i) * DIM, DIM * 4);
}
END_TEST

/* The same of columns, wherever in a block of random words the first one is. */
START_TEST(test_columns_do_not_depend_on_their_neighbours)
{
	struct kernel_fill whole = fill_of(KERNEL_FILL_UNIFORM, -1.0f, 1.0f);
	float part[5 * DIM];

	kernel_fill_rows(&whole, 0, 50);
	for (u32 first = 0; first < DIM; first++)
		for (u32 dim = 1; dim <= DIM - first; dim++) {
			struct kernel_fill f = whole;

			f.out = part;
			f.dim = f.stride = dim;
			f.first_column = first;
			f.first_row = 3;
			f.row_step = 11;
			kernel_fill_rows(&f, 0, 5);
			for (u32 i = 0; i < 5; i++)
				ck_assert_mem_eq(part + i * dim,
						 filled + (3 + 11 * i) * DIM + first, dim * 4);
		}
}
END_TEST

static u32 equal_to_base(struct kernel_fill f)
{
	float other[DIM];
	u32 equal = 0;

	f.out = other;
	kernel_fill_rows(&f, 0, 1);
	for (u32 c = 0; c < DIM; c++)
		equal += other[c] == filled[c];
	return equal;
}

START_TEST(test_streams_differ_by_seed_slot_row_and_column)
{
	struct kernel_fill f = fill_of(KERNEL_FILL_UNIFORM, 0.0f, 1.0f), other = f;

	kernel_fill_rows(&f, 0, 1);
	for (u32 c = 1; c < DIM; c++)
		for (u32 other_column = 0; other_column < c; other_column++)
			ck_assert(filled[c] != filled[other_column]);
	ck_assert_uint_eq(equal_to_base(f), DIM);
	other.slot = 1;
	ck_assert_uint_eq(equal_to_base(other), 0);
	other = f;
	other.seed ^= (u64)1 << 63;
	ck_assert_uint_eq(equal_to_base(other), 0);
	other = f;
	other.first_row = (u64)1 << 40;
	ck_assert_uint_eq(equal_to_base(other), 0);
	/* Neither is a column beyond 2^31 the one that has its low bits. */
	other = f;
	other.first_column = 1u << 31;
	ck_assert_uint_eq(equal_to_base(other), 0);
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, test_philox_known_answers);
	tcase_add_test(tcase, test_constant);
	tcase_add_test(tcase, test_uniform_moments_and_limits);
	tcase_add_test(tcase, test_uniform_never_reaches_its_upper_limit);
	tcase_add_test(tcase, test_truncated_normal_moments_and_limits);
	tcase_add_test(tcase, test_quantile_inverts_the_distribution);
	tcase_add_test(tcase, test_rows_do_not_depend_on_their_neighbours);
	tcase_add_test(tcase, test_columns_do_not_depend_on_their_neighbours);
	tcase_add_test(tcase, test_streams_differ_by_seed_slot_row_and_column);
}

int main(void)
{
	return suite_main("kernels_fill", add);
}
