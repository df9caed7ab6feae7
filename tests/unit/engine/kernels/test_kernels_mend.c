// SPDX-License-Identifier: MIT
/*
 * Updates whose result is a number of f32 although a factor on the way is none, on every variant,
 * in vectors and in the floats after them. Beside them, what stays as IEEE says.
 */
#include <float.h>
#include <math.h>

#include "engine/kernels/kernels.h"
#include "engine/kernels/optimizers.h"
#include "direct_main.h"
#include "element.h"
#include "test_kernels.h"

/* A finite row after the update; a number to compare with, within an ulp or two. */
static void expect_near(const struct kernel_update *u, struct element before, float g,
			struct element want)
{
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		struct element got = apply(ops, u, before, g);
		const float *is = &got.w, *should = &want.w;

		for (u32 i = 0; i < 4; i++)
			ck_assert_msg(isfinite(is[i]) && fabsf(is[i] - should[i]) <=
								 0x1p-22f * fabsf(should[i]),
				      "%s: [%u] %a, not %a", ops->name, i, (double)is[i],
				      (double)should[i]);
	}
}

/* The square of epsilon is no float: an untouched slot divided by it gave 0 / 0, and 1 / 0. */
START_TEST(test_adam_with_a_tiny_epsilon)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ADAM, .lr = 0.5f, .hyper = {0.5f, 0.75f, 0x1p-100f, 1, 0}};

	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	/* m = 2^-101, v = 2^-202: w -= 0.5 * 2^-101 / sqrt(2^-202 + 2^-200) */
	expect_near(&u, E(10, {0, 0}), 0x1p-100f, E(10 - 0.25f / sqrtf(1.25f), {0x1p-101f, 0}));
	u.hyper[2] = 0x1p-149f;
	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	u.hyper[3] = 0;
	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	/* epsilon times the root of 1 - beta_2^t rounds to 0 */
	u.hyper[4] = 1;
	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	u.hyper[1] = 0x1.fffffep-1f;
	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	u.step = 1ull << 40;
	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
}
END_TEST

/* A rate of 2^100 times a gradient of 2^30 is none, but over a root of 2^60 it is 2^70. */
START_TEST(test_large_rates)
{
	struct kernel_update u = {.optimizer = KERNEL_ADAGRAD, .lr = 0x1p100f};

	expect_near(&u, E(1, {0x1p120f}), 0x1p30f, E(-0x1p70f, {0x1p120f}));
	u = (struct kernel_update){
		.optimizer = KERNEL_ADAM, .lr = 0x1p100f, .hyper = {0.5f, 0.5f, 1e-7f, 1, 0}};
	expect_near(&u, E(1, {0x1p31f, 0x1p119f}), 0, E(-0x1p71f, {0x1p30f, 0x1p118f}));
	u.flags = KERNEL_WEIGHT_CLIP;
	u.weight_min = -3;
	u.weight_max = 3;
	expect_near(&u, E(1, {0x1p31f, 0x1p119f}), 0, E(-3, {0x1p30f, 0x1p118f}));
	u = (struct kernel_update){
		.optimizer = KERNEL_PROXIMAL_YOGI, .lr = 1, .hyper = {0, 1, 0.5f, 0, 0x1p-149f}};
	expect_near(&u, E(1, {0, 0}), 0, E(0x1p-149f, {0, 0}));
}
END_TEST

#define WIDE 37u

/* A row of ones whose slot of one number is 0, on every variant. */
static void expect_rows_near(const struct kernel_update *update, float g, float want, float slot)
{
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		float w[WIDE], momenta[WIDE] = {0}, gradient[WIDE], one = 0;
		struct kernel_update u = *update;

		for (u32 c = 0; c < WIDE; c++) {
			w[c] = 1;
			gradient[c] = g;
		}
		u.dim = u.stride = WIDE;
		u.table = w;
		u.slots[0] = u.optimizer == KERNEL_ROWWISE_ADAGRAD ? &one : momenta;
		u.slots[1] = &one;
		u.step = 1;
		kernel_prepare(&u);
		ck_assert(!ops->update_row(&u, 0, gradient));
		ck_assert_msg(one == slot, "%s: slot %a, not %a", ops->name, one, slot);
		for (u32 c = 0; c < WIDE; c++)
			ck_assert_msg(fabsf(w[c] - want) <= 0x1p-22f * fabsf(want),
				      "%s: [%u] %a, not %a", ops->name, c, w[c], want);
	}
}

/* The factor of all elements of a row is no float, and times a small gradient it is. */
START_TEST(test_rows_of_large_rates)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ROWWISE_ADAGRAD, .lr = 0x1p100f, .hyper = {0x1p-60f}};

	expect_rows_near(&u, 0x1p-50f, -0x1p100f / (1 + 0x1p-10f), 0x1p-100f);
	expect_rows_near(&u, 0, 1, 0);
	u.hyper[1] = 1;
	expect_rows_near(&u, 0x1p-50f, -0x1p100f / (1 + 0x1p-10f), 0x1p-100f);
	u = (struct kernel_update){.optimizer = KERNEL_PARTIAL_ROWWISE_ADAM,
				   .lr = 0x1p100f,
				   .hyper = {0, 0, 0x1p-60f}};
	expect_rows_near(&u, 0x1p-50f, -0x1p100f / (1 + 0x1p-10f), 0x1p-100f);
	expect_rows_near(&u, 0, 1, 0);
}
END_TEST

/* Squares that no float holds have a mean that does. */
START_TEST(test_means_of_large_squares)
{
	struct kernel_update u = {.optimizer = KERNEL_ROWWISE_ADAGRAD, .lr = 0x1p10f, .hyper = {1}};

	expect_rows_near(&u, 0x1.8p63f, 1 - 0x1p10f, 0x1.2p127f);
	expect_rows_near(&u, 0x1p-70f, 1, 0x1p-140f);
}
END_TEST

/* Decay by a rate: neither 2^80 * 2^70 nor that times a row's 0 may harm it. */
START_TEST(test_decay_by_a_large_rate)
{
	struct kernel_update u = {.optimizer = KERNEL_SGD,
				  .flags = KERNEL_DECAY | KERNEL_DECAY_TIMES_LR,
				  .lr = 0x1p70f,
				  .decay = 0x1p80f};

	expect_near(&u, E(0, {0}), 0, E(0, {0}));
	expect_near(&u, E(0x1p-60f, {0}), 0, E(-0x1p90f, {0}));
	u.lr = 0.5f;
	u.flags = KERNEL_DECAY;
	expect(&u, E(0x1p60f, {0}), 0, E(-INFINITY, {0}));
}
END_TEST

/* The power of a small sum is no float, but times a gradient of 0, or a small one, it is. */
START_TEST(test_powers)
{
	struct kernel_update u = {.optimizer = KERNEL_ADAGRAD_MOMENTUM,
				  .lr = 0.5f,
				  .hyper = {0, 0, 0.25f, 1, 0x1p-40f}};

	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	expect_near(&u, E(10, {0, 0}), 0x1p-80f, E(-0x1p79f, {0x1p-149f * 0, 0x1p80f}));
	u.hyper[2] = FLT_MIN;
	expect_near(&u, E(10, {0, 0}), 0, E(10, {0, 0}));
	expect_near(&u, E(10, {0.5f, 0}), 0, E(10, {0.5f, 0}));
	/* 0.1^50 is 0 in f32; a row without a gradient was divided by it */
	u = (struct kernel_update){
		.optimizer = KERNEL_FTRL, .lr = 0.5f, .hyper = {-50, 0, 0, 0, 0}};
	expect_near(&u, E(10, {0.1f, 0}), 0, E(0, {0.1f, 0}));
	u = (struct kernel_update){
		.optimizer = KERNEL_MDL_ADAGRAD_LIGHT, .lr = 0.5f, .hyper = {0, -1, -1, 0, 0, 1}};
	expect_near(&u, E(10, {0x1p-140f, 0, 0}), 0, E(10, {0x1p-140f, 0, 0}));
}
END_TEST

/*
 * One gradient again and again: its square's mean and the square of its mean are equal, and by
 * rounding the difference, under a root, falls below 0 by more than epsilon.
 */
START_TEST(test_a_variance_of_zero)
{
	struct kernel_update u = {
		.optimizer = KERNEL_CENTERED_RMS_PROP, .lr = 0x1p-10f, .hyper = {0.9f, 0, 1e-10f}};
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		for (u32 k = 1; k < 40; k++) {
			struct element e = {0};

			for (u32 step = 0; step < 500; step++) {
				e = apply(ops, &u, e, 0.7f * (float)k);
				ck_assert_msg(isfinite(e.w) && isfinite(e.slot[1]),
					      "%s: gradient %g, step %u: %g", ops->name, 0.7 * k,
					      step, (double)e.w);
			}
		}
	}
}
END_TEST

/* Sums and slots that leave f32 do so as in IEEE, and what was not finite is not mended. */
START_TEST(test_what_stays)
{
	struct kernel_update u = {.optimizer = KERNEL_SGD, .lr = 0x1p100f};

	expect(&u, E(1, {0}), 0x1p100f, E(-INFINITY, {0}));
	expect(&u, E(INFINITY, {0}), 0, E(INFINITY, {0}));
	expect(&u, E(1, {0}), INFINITY, E(-INFINITY, {0}));
	expect(&u, E(1, {0}), NAN, E(NAN, {0}));
	u = (struct kernel_update){.optimizer = KERNEL_ADAGRAD, .lr = 0x1p100f};
	expect(&u, E(1, {1}), 0x1p70f, E(NAN, {INFINITY}));
	expect(&u, E(1, {0}), 0, E(NAN, {0}));
	u.lr = 0.5f;
	expect(&u, E(1, {1}), 0x1p70f, E(1, {INFINITY}));
	u = (struct kernel_update){.optimizer = KERNEL_FTRL, .lr = 0, .hyper = {-0.5f, 0, 0, 0, 0}};
	expect(&u, E(1, {1, 0}), 0, E(NAN, {1, NAN}));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, test_adam_with_a_tiny_epsilon);
	tcase_add_test(tcase, test_large_rates);
	tcase_add_test(tcase, test_rows_of_large_rates);
	tcase_add_test(tcase, test_means_of_large_squares);
	tcase_add_test(tcase, test_decay_by_a_large_rate);
	tcase_add_test(tcase, test_powers);
	tcase_add_test(tcase, test_a_variance_of_zero);
	tcase_add_test(tcase, test_what_stays);
}

int main(void)
{
	return suite_main("kernels_mend", add);
}
