// SPDX-License-Identifier: MIT
/*
 * Bags whose weights are so small, or cancel so well, that 1 / D is no number of f32: mean and sqrtn
 * come out as if all weights were larger. Beside them, bags at the limits whose bits stay.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/kernels/kernels.h"
#include "suite.h"
#include "variants.h"

#define MOST 4
#define DIM 19 /* more than a vector of any variant, and a rest */

struct result {
	float out[DIM], scale, coef[MOST], stretched[MOST];
};

/* Row k is k + 1 in every column. */
static struct result combine(const struct kernel_ops *ops, u32 combiner, const float *weights,
			     u64 count)
{
	const u64 bag[] = {0, count}, rows[] = {0, 1, 2, 3};
	float table[MOST * DIM];
	struct result r;
	struct kernel_scale_work scale = {.combiner = combiner,
					  .weights = weights,
					  .bag = bag,
					  .scales = &r.scale,
					  .coef = r.coef,
					  .stretched = r.stretched};
	struct kernel_bag_work work = {.table = table,
				       .stride = DIM,
				       .dim = DIM,
				       .rows = rows,
				       .rows_count = count,
				       .weights = r.stretched,
				       .scales = &r.scale,
				       .bag = bag,
				       .out = r.out,
				       .out_stride = DIM};

	for (u32 i = 0; i < MOST * DIM; i++)
		table[i] = (float)(i / DIM + 1);
	memcpy(r.stretched, weights, count * sizeof(*weights));
	ops->scales(&scale, 0, 1);
	ops->lookup(&work, 0, 1);
	return r;
}

struct bag {
	u32 combiner;
	float weights[MOST];
	u64 count;
};

static const struct bag tiny[] = {
	{KERNEL_MEAN, {0x1p-149f}, 1},
	{KERNEL_MEAN, {-0x1p-149f}, 1},
	{KERNEL_MEAN, {0x1p-149f, 0x1p-149f, 0x1p-148f}, 3},
	{KERNEL_MEAN, {0x1p-128f}, 1},
	{KERNEL_MEAN, {0x1.fffffep-129f}, 1},
	{KERNEL_MEAN, {1e-39f, 0.0f}, 2},
	{KERNEL_MEAN, {0.0f, -0.0f, 1e-45f, 1e-39f}, 4},
	{KERNEL_MEAN, {-1e-39f, -2e-40f}, 2},
	{KERNEL_MEAN, {1e-39f, -1.000001e-39f}, 2},
	{KERNEL_MEAN, {0x1.8p-126f, -0x1.8p-126f, 0x1p-149f}, 3},
	{KERNEL_MEAN, {FLT_MIN, 0x1p-149f - FLT_MIN}, 2},
	{KERNEL_MEAN, {0x1p-100f, 0x1p-149f, -0x1p-100f}, 3},
	{KERNEL_SQRTN, {0x1p-149f}, 1},
	{KERNEL_SQRTN, {-0x1p-149f}, 1},
	{KERNEL_SQRTN, {0x1p-128f}, 1},
	{KERNEL_SQRTN, {1e-39f, 0.0f}, 2},
	{KERNEL_SQRTN, {-1e-39f, 1e-40f, 0x1p-149f}, 3},
	{KERNEL_SQRTN, {0x1p-130f, 0x1p-130f, 0x1p-130f}, 3},
};

static double denominator(const struct bag *b)
{
	double sum = 0;

	for (u64 k = 0; k < b->count; k++)
		sum += b->combiner == KERNEL_MEAN ? b->weights[k]
						  : (double)b->weights[k] * b->weights[k];
	return b->combiner == KERNEL_MEAN ? sum : sqrt(sum);
}

static bool near(double got, double want, double size)
{
	return fabs(got - want) <= 0x1p-21 * size;
}

START_TEST(tiny_weights_combine_as_large_ones)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (size_t i = 0; i < sizeof(tiny) / sizeof(*tiny); i++) {
		const struct bag *b = &tiny[i];
		struct result r = combine(ops, b->combiner, b->weights, b->count);
		double d = denominator(b), want = 0, size = 0;

		for (u64 k = 0; k < b->count; k++) {
			double c = b->weights[k] / d;

			want += c * (double)(k + 1);
			size += fabs(c) * (double)(k + 1);
			ck_assert_msg(r.coef[k] == (float)c || near(r.coef[k], c, fabs(c)),
				      "bag %zu: coefficient %llu is %g, not %g", i,
				      (unsigned long long)k, (double)r.coef[k], c);
		}
		for (u32 c = 0; c < DIM; c++)
			ck_assert_msg(near(r.out[c], want, size), "bag %zu: %g, not %g", i,
				      (double)r.out[c], want);
	}
}
END_TEST

/* Two weights of 2^60 cancel; what remains is 2^190 times smaller. */
START_TEST(weights_that_cancel)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	const float weights[] = {1e-39f, 0x1p60f, -0x1p60f};
	const u64 bag[] = {0, 3}, rows[] = {2, 1, 1};
	const float table[] = {0, 7, 5};
	float stretched[3], scale, coef[3], out;
	struct kernel_scale_work s = {.combiner = KERNEL_MEAN,
				      .weights = weights,
				      .bag = bag,
				      .scales = &scale,
				      .coef = coef,
				      .stretched = stretched};
	struct kernel_bag_work w = {.table = table,
				    .stride = 1,
				    .dim = 1,
				    .rows = rows,
				    .rows_count = 3,
				    .weights = stretched,
				    .scales = &scale,
				    .bag = bag,
				    .out = &out,
				    .out_stride = 1};

	/* In order: the first weight is lost beside the second, so it has to come last. */
	ops->scales(&s, 0, 1);
	ck_assert(scale == 0.0f && coef[0] == 0.0f && coef[1] == 0.0f);
	s.weights = (const float[]){0x1p60f, -0x1p60f, 1e-39f};
	w.rows = (const u64[]){1, 1, 2};
	ops->scales(&s, 0, 1);
	ops->lookup(&w, 0, 1);
	ck_assert_msg(fabsf(out - 5.0f) < 1e-5f && fabsf(coef[2] - 1.0f) < 1e-5f, "%g %g",
		      (double)out, (double)coef[2]);
	ck_assert(isinf(coef[0]) && coef[0] > 0 && isinf(coef[1]) && coef[1] < 0);
}
END_TEST

/* No f32 is the scale of these, however they are stretched: it is the largest one, not inf. */
START_TEST(widest_range_gives_a_finite_scale)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	const float weights[] = {FLT_MAX, -FLT_MAX, 0x1p-149f};
	struct result r = combine(ops, KERNEL_MEAN, weights, 3);

	ck_assert(r.scale == FLT_MAX && r.coef[2] == 1.0f);
	ck_assert(r.stretched[0] == FLT_MAX && r.stretched[2] == 0x1p-149f);
}
END_TEST

/* All others keep their weights, and their bits: at the smallest D whose scale fits, at the largest. */
START_TEST(weights_that_fit_stay)
{
	static const struct bag bags[] = {
		{KERNEL_MEAN, {0x1.000008p-128f}, 1},
		{KERNEL_MEAN, {0x1p-127f, -0x1p-149f}, 2},
		{KERNEL_MEAN, {FLT_MAX, FLT_MAX}, 2},
		{KERNEL_MEAN, {FLT_MAX, 0x1p-149f}, 2},
		{KERNEL_MEAN, {1.0f, -1.0f}, 2},
		{KERNEL_MEAN, {0x1p-149f, -0x1p-149f}, 2},
		{KERNEL_MEAN, {1.0f, -2.0f}, 2},
		{KERNEL_SQRTN, {0x1p-127f}, 1},
		{KERNEL_SQRTN, {FLT_MAX, FLT_MAX, FLT_MAX}, 3},
		{KERNEL_SQRTN, {FLT_MAX, 0x1p-149f}, 2},
		{KERNEL_SQRTN, {0.0f, -0.0f}, 2},
		{KERNEL_SUM, {0x1p-149f, 0.0f}, 2},
		{KERNEL_MEAN, {INFINITY, 0x1p-149f}, 2},
	};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (size_t i = 0; i < sizeof(bags) / sizeof(*bags); i++) {
		const struct bag *b = &bags[i];
		struct result r = combine(ops, b->combiner, b->weights, b->count);
		double d = b->combiner == KERNEL_SUM ? 1 : denominator(b);
		float scale = d == 0 ? 0.0f : (float)(1.0 / d);

		ck_assert_msg(r.scale == scale, "bag %zu: scale %a, not %a", i, (double)r.scale,
			      (double)scale);
		ck_assert(!memcmp(r.stretched, b->weights, b->count * sizeof(float)));
		for (u64 k = 0; k < b->count; k++) {
			float c = scale * b->weights[k];

			ck_assert_msg(!memcmp(&r.coef[k], &c, sizeof(c)) || isnan(c),
				      "bag %zu: coefficient %a, not %a", i, (double)r.coef[k],
				      (double)c);
		}
	}
}
END_TEST

static void add(TCase *tcase)
{
	add_variant_tests(tcase, tiny_weights_combine_as_large_ones, 1);
	add_variant_tests(tcase, weights_that_cancel, 1);
	add_variant_tests(tcase, widest_range_gives_a_finite_scale, 1);
	add_variant_tests(tcase, weights_that_fit_stay, 1);
}

int main(void)
{
	return suite_main("kernels_stretch", add);
}
