// SPDX-License-Identifier: MIT
/*
 * Optimizers by numbers worked by hand, both in whole vectors of the processor and in the floats
 * behind them; and the constants that a step prepares.
 */
#include <math.h>

#include "engine/kernels/kernels.h"
#include "engine/kernels/optimizers.h"
#include "direct_main.h"
#include "element.h"
#include "test_kernels.h"

START_TEST(test_sgd_adagrad_momentum)
{
	struct kernel_update u = {.optimizer = KERNEL_SGD, .lr = 0.5f};

	expect(&u, E(10, {0}), 3, E(8.5f, {0}));
	u.optimizer = KERNEL_ADAGRAD;
	expect(&u, E(10, {9}), 4, E(9.6f, {25}));
	u.optimizer = KERNEL_MOMENTUM;
	u.hyper[0] = 0.5f;
	expect(&u, E(10, {4}), 1, E(8.5f, {3}));
	u.hyper[1] = 1;
	expect(&u, E(10, {4}), 1, E(8.75f, {3}));
}
END_TEST

/* To sqrt(0 + 16) + 4; then 9 to 25, beside an epsilon of 3. */
START_TEST(test_adagrad_epsilon)
{
	struct kernel_update u = {.optimizer = KERNEL_ADAGRAD, .lr = 2, .hyper = {4}};

	expect(&u, E(10, {0}), 4, E(9, {16}));
	expect(&u, E(10, {0}), 0, E(10, {0}));
	u.hyper[0] = 3;
	expect(&u, E(10, {9}), 4, E(9, {25}));
}
END_TEST

/* Step 1 with beta_2 0.75: the rate is 7 * 0.5 / 0.5, epsilon 3 as it is. */
START_TEST(test_adam_epsilon_hat)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ADAM, .lr = 7, .hyper = {0.5f, 0.75f, 3, 1, 1, 1}};

	expect(&u, E(10, {2, 16}), 4, E(7, {3, 16}));
	u.hyper[2] = 17;
	expect(&u, E(10, {2, 16}), 4, E(9, {3, 16}));
}
END_TEST

#define ROW_DIM 4u

/* The row {10, 20, 30, 40} on every variant, whose slots are @wide, if any, and @one. */
static void expect_row(struct kernel_update u, const float *gradient, float wide, float one,
		       const float *row, const float *wide_after, float one_after)
{
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		float w[ROW_DIM], slot[ROW_DIM], single = one;

		for (u32 c = 0; c < ROW_DIM; c++) {
			w[c] = 10.0f * (float)(c + 1);
			slot[c] = wide;
		}
		u.dim = u.stride = ROW_DIM;
		u.table = w;
		u.slots[0] = wide_after ? slot : &single;
		u.slots[1] = &single;
		u.step = 1;
		kernel_prepare(&u);
		ck_assert(!ops->update_row(&u, 0, gradient));
		for (u32 c = 0; c < ROW_DIM; c++) {
			ck_assert_msg(w[c] == row[c], "%s: %a not %a", ops->name, w[c], row[c]);
			ck_assert(!wide_after || slot[c] == wide_after[c]);
		}
		ck_assert_msg(single == one_after, "%s: %a", ops->name, single);
	}
}

#define ROW(...) ((const float[ROW_DIM]){__VA_ARGS__})

/* The mean of 4, 0, 0, 4 in squares is 8; the root of 8 + 8, with epsilon 4, is 8. */
START_TEST(test_rowwise_adagrad)
{
	struct kernel_update u = {.optimizer = KERNEL_ROWWISE_ADAGRAD, .lr = 4, .hyper = {4}};

	expect_row(u, ROW(4, 0, 0, -4), 0, 8, ROW(8, 20, 30, 42), NULL, 16);
	expect_row(u, ROW(0, 0, 0, 0), 0, 0, ROW(10, 20, 30, 40), NULL, 0);
	u.flags = KERNEL_MAX_NORM;
	u.max_norm = 0;
	expect_row(u, ROW(4, 0, 0, -4), 0, 8, ROW(0, 0, 0, 0), NULL, 16);
	/* With half of the row they are 0, 0, 0, 4, and the root of 32 + 4, with 2, is 8. */
	u.flags = KERNEL_DECAY_GRADIENT;
	u.decay = 0.5f;
	u.hyper[0] = 2;
	expect_row(u, ROW(-5, -10, -15, -16), 0, 32, ROW(10, 20, 30, 38), NULL, 36);
}
END_TEST

/* The mean of 4, 8, 0, 4 is 4, and its square 16: to 16, whose root with 4 is 8. */
START_TEST(test_rowwise_adagrad_of_means)
{
	struct kernel_update u = {.optimizer = KERNEL_ROWWISE_ADAGRAD, .lr = 4, .hyper = {4, 1}};

	expect_row(u, ROW(4, 8, 0, 4), 0, 0, ROW(8, 18, 28, 38), NULL, 16);
	expect_row(u, ROW(4, 8, 0, -12), 0, 16, ROW(10, 20, 30, 40), NULL, 16);
}
END_TEST

/* Step 1 of beta_1 0.5, beta_2 0.75: rate 4 * 0.5 / 0.5, epsilon 4 * 0.5; v: 3 / 4 * 4 + 8 / 4. */
START_TEST(test_partial_rowwise_adam)
{
	struct kernel_update u = {
		.optimizer = KERNEL_PARTIAL_ROWWISE_ADAM, .lr = 6, .hyper = {0.5f, 0.75f, 8}};

	expect_row(u, ROW(4, 0, 0, -4), 2, 8.0f / 3, ROW(7, 19, 29, 41), ROW(3, 1, 1, -1), 4);
}
END_TEST

/* 3, 0, 4, 0 has length 5, which is too long by a half; 0.6 and 0.8 is not. */
START_TEST(test_max_norm)
{
	struct kernel_update u = {.optimizer = KERNEL_SGD, .lr = 1, .flags = KERNEL_MAX_NORM};

	u.max_norm = 2.5f;
	expect_row(u, ROW(7, 20, 26, 40), 0, 0, ROW(1.5f, 0, 2, 0), NULL, 0);
	u.max_norm = 5;
	expect_row(u, ROW(7, 20, 26, 40), 0, 0, ROW(3, 0, 4, 0), NULL, 0);
}
END_TEST

/* s = 2 / sqrt(4); then beta2 1/2: 8 + 8 = 16, to the powers -1/2, -1, -1/4; then 16 + 48. */
START_TEST(test_adagrad_momentum)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ADAGRAD_MOMENTUM, .lr = 0.5f, .hyper = {0.5f, 0, 2, 1, 1e-10f}};

	expect(&u, E(10, {0, 4}), 2, E(8.5f, {4, 3}));
	u.hyper[1] = 1;
	expect(&u, E(10, {0, 4}), 2, E(8.75f, {4, 3}));
	u.hyper[3] = 0.5f;
	expect(&u, E(10, {16, 4}), 4, E(8.75f, {16, 3}));
	u.hyper[2] = 1;
	expect(&u, E(10, {16, 4}), 4, E(9.3125f, {16, 2.25f}));
	u.hyper[2] = 4;
	expect(&u, E(10, {16, 4}), 4, E(8.0f, {16, 4}));
	u.hyper[2] = 2;
	u.hyper[4] = 48;
	expect(&u, E(10, {16, 4}), 4, E(9.125f, {16, 2.5f}));
}
END_TEST

/* 3 to 5 by a gradient of 4: dp = 2. Linear 1 + 4 - 2 * 1 / 0.5 = 1 in both forms. */
START_TEST(test_ftrl)
{
	struct kernel_update u = {
		.optimizer = KERNEL_FTRL, .lr = 0.5f, .hyper = {-0.5f, 0, 2, 1, 0}};

	expect(&u, E(1, {9, 1}), 4, E(-1.0f / 16, {25, 1}));
	u.hyper[1] = 0.25f;
	expect(&u, E(1, {9, 1}), 4, E(-0.75f / 16, {25, 1}));
	expect(&u, E(1, {9, -1}), 4, E(0.75f / 16, {25, -1}));
	u.hyper[1] = 2;
	expect(&u, E(1, {9, 1}), 4, E(0, {25, 1}));
	u.hyper[4] = 1;
	u.hyper[1] = 0.5f;
	expect(&u, E(1, {9, 1}), 4, E(-0.75f / 8, {25, 1}));
	expect(&u, E(1, {9, -1}), 4, E(0.75f / 8, {25, -1}));
	u.hyper[1] = 0;
	expect(&u, E(1, {9, 1}), 4, E(-1.0f / 8, {25, 1}));
}
END_TEST

/* Accumulators as they are, 9 and 25; then no power at all: 1 and 1. */
START_TEST(test_ftrl_powers)
{
	struct kernel_update u = {.optimizer = KERNEL_FTRL, .lr = 0.5f, .hyper = {-1, 0, 2, 1, 0}};

	expect(&u, E(1, {9, 1}), 4, E(27.0f / 56, {25, -27}));
	u.hyper[0] = 0;
	expect(&u, E(1, {9, 1}), 4, E(-5.0f / 8, {25, 5}));
}
END_TEST

/* The row is made anew from its linear: a first touch without a gradient forgets it. */
START_TEST(test_ftrl_of_a_zero_gradient)
{
	struct kernel_update u = {
		.optimizer = KERNEL_FTRL, .lr = 0.5f, .hyper = {-0.5f, 0, 2, 1, 0}};

	expect(&u, E(7, {9, 0}), 0, E(-0.0f, {9, 0}));
	u.hyper[1] = 0.25f;
	expect(&u, E(7, {9, 0}), 0, E(0, {9, 0}));
	expect(&u, E(7, {25, 4}), 0, E(-3.75f / 16, {25, 4}));
}
END_TEST

/* Velocity 16 and momentum 3: 15 / sqrt(16 + 9), 21 / (sqrt(16) + 3). */
START_TEST(test_adam)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ADAM, .lr = 5, .hyper = {0.5f, 0.75f, 3, 1, 0}};

	expect(&u, E(10, {2, 16}), 4, E(7, {3, 16}));
	u.lr = 7;
	u.hyper[3] = 0;
	expect(&u, E(10, {2, 16}), 4, E(7, {3, 16}));
}
END_TEST

/* Step 1: rate 5 * 0.5 / 0.5, epsilon 2 * 0.5. Step 2 with beta_2 0: rate 1.5 / 0.75. */
START_TEST(test_adam_with_bias_correction)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ADAM, .lr = 5, .step = 1, .hyper = {0.5f, 0.75f, 2, 0, 1}};

	expect(&u, E(10, {2, 16}), 4, E(7, {3, 16}));
	u.hyper[3] = 1;
	expect(&u, E(10, {2, 16}), 4, E(7, {3, 16}));
	u.step = (u64)1 << 40;
	u.hyper[2] = 1;
	expect(&u, E(10, {2, 16}), 4, E(7, {3, 16}));
	u.step = 2;
	u.lr = 1.5f;
	u.hyper[1] = 0;
	expect(&u, E(10, {16, 9}), 4, E(6, {10, 16}));
}
END_TEST

/* The decay is by the rate as it was given: 10 - 0.5 * 1.5 * 10 = 2.5. */
START_TEST(test_decay_by_the_raw_rate)
{
	struct kernel_update u = {.optimizer = KERNEL_ADAM,
				  .lr = 1.5f,
				  .step = 2,
				  .decay = 0.5f,
				  .flags = KERNEL_DECAY | KERNEL_DECAY_TIMES_LR,
				  .hyper = {0.5f, 0, 1, 0, 1}};

	expect(&u, E(10, {16, 9}), 4, E(-1.5f, {10, 16}));
	u.flags = KERNEL_DECAY;
	expect(&u, E(10, {16, 9}), 4, E(1, {10, 16}));
}
END_TEST

/* All of them, in order, around a FTRL whose linear shows the decayed 1 and the gradient 4. */
START_TEST(test_flags_in_order)
{
	struct kernel_update u = {.optimizer = KERNEL_FTRL,
				  .lr = 0.5f,
				  .decay = 0.5f,
				  .flags = KERNEL_GRADIENT_SCALE | KERNEL_GRADIENT_CLIP |
					   KERNEL_DECAY | KERNEL_WEIGHT_CLIP,
				  .gradient_multiplier = 2,
				  .gradient_min = -3,
				  .gradient_max = 4,
				  .weight_min = -0.03125f,
				  .weight_max = 1,
				  .hyper = {-0.5f, 0, 2, 1, 0}};

	expect(&u, E(2, {9, 1}), 100, E(-0.03125f, {25, 1}));
	expect(&u, E(2, {9, 1}), 2, E(-0.03125f, {25, 1}));
	u.weight_min = -1;
	expect(&u, E(2, {9, 1}), 2, E(-0.0625f, {25, 1}));
}
END_TEST

/* Infinities and NaN give what IEEE 754 says, and denormals are not flushed to zero. */
START_TEST(test_ftrl_of_special_values)
{
	struct kernel_update u = {
		.optimizer = KERNEL_FTRL, .lr = 0.5f, .hyper = {-0.5f, 0, 2, 1, 0}};

	expect(&u, E(1, {25, 0}), 0x1p-140f, E(-0x1p-144f, {25, 0x1p-140f}));
	expect(&u, E(1, {25, 0}), NAN, E(NAN, {NAN, NAN}));
	expect(&u, E(1, {25, 0}), INFINITY, E(NAN, {INFINITY, NAN}));
	expect(&u, E(1, {25, INFINITY}), 0, E(-INFINITY, {25, INFINITY}));
	expect(&u, E(1, {-1, 0}), 0, E(NAN, {-1, NAN}));
	u.hyper[1] = 1;
	expect(&u, E(1, {25, NAN}), 0, E(NAN, {25, NAN}));
	expect(&u, E(1, {25, INFINITY}), 0, E(-INFINITY, {25, INFINITY}));
}
END_TEST

START_TEST(test_ftrl_of_no_rate)
{
	struct kernel_update u = {.optimizer = KERNEL_FTRL, .hyper = {-0.5f, 0, 2, 1, 0}};

	expect(&u, E(1, {9, 1}), 4, E(NAN, {25, -INFINITY}));
	expect(&u, E(1, {9, 1}), 0, E(NAN, {9, NAN}));
	u.hyper[4] = 1;
	expect(&u, E(1, {9, 1}), 4, E(1.0f / 6, {25, -1}));
}
END_TEST

START_TEST(test_others_of_special_values)
{
	struct kernel_update u = {.optimizer = KERNEL_ADAM, .lr = 1, .hyper = {0, 0, 1, 0, 0}};

	expect(&u, E(1, {3, 3}), INFINITY, E(NAN, {INFINITY, INFINITY}));
	expect(&u, E(1, {3, 3}), 0x1p-149f, E(1, {0x1p-149f, 0}));
	expect(&u, E(1, {3, -9}), 0, E(1, {0, 0}));
	u.optimizer = KERNEL_ADAGRAD_MOMENTUM;
	u.hyper[1] = 0;
	u.hyper[2] = 2;
	u.hyper[3] = 1;
	u.hyper[4] = 1;
	expect(&u, E(1, {0, 3}), INFINITY, E(NAN, {INFINITY, NAN}));
	expect(&u, E(0, {0, 3}), 0x1p-149f, E(-0x1p-149f, {0, 0x1p-149f}));
	expect(&u, E(1, {-1, 3}), 0, E(NAN, {-1, NAN}));
	expect(&u, E(1, {-4, 3}), 1, E(NAN, {-3, NAN}));
}
END_TEST

static long double f32_ulps(float got, long double want)
{
	int exponent;

	frexpl(want, &exponent);
	return fabsl(got - want) / ldexpl(1.0L, exponent - 24);
}

START_TEST(test_bias_correction_over_many_steps)
{
	for (u32 i = 0; i < 20000; i++) {
		struct kernel_update u = {.optimizer = KERNEL_ADAM,
					  .lr = 0.001f,
					  .hyper = {0.9f, 0.999f, 1e-8f, 0, 1}};
		long double root;

		if (i % 2) {
			u.hyper[0] = float_of((u32)random_below(0x3f800000));
			u.hyper[1] = float_of(0x3f7fffff - (u32)random_below(1000));
		}
		u.step = i < 200 ? i + 1 : 1 + random_below((u64)1 << random_below(36));
		root = sqrtl(1.0L - powl(u.hyper[1], u.step));
		kernel_prepare(&u);
		ck_assert(f32_ulps(u.prepared[1], u.hyper[2] * root) <= 0.51L);
		root = u.lr * root / (1.0L - powl(u.hyper[0], u.step));
		ck_assert_msg(f32_ulps(u.prepared[0], root) <= 0.51L, "%a ^ %llu: %a not %La",
			      u.hyper[0], (unsigned long long)u.step, u.prepared[0], root);
	}
}
END_TEST

/* A third is not a float. */
START_TEST(test_powers_are_f64)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ADAGRAD_MOMENTUM, .lr = 1, .hyper = {0, 0, 3, 1, 1}};

	kernel_prepare(&u);
	ck_assert_msg(u.power == -0x1.5555555555555p-2, "%a", u.power);
	u.optimizer = KERNEL_FTRL;
	u.hyper[0] = -0x1.333334p-2f;
	kernel_prepare(&u);
	ck_assert_msg(u.power == 0x1.333334p-2, "%a", u.power);
}
END_TEST

START_TEST(test_descriptions)
{
	static const struct {
		const char *name, *slots[3];
		float starts[3];
		u32 hyper;
	} all[] = {
		[KERNEL_SGD] = {.name = "sgd"},
		[KERNEL_ADAGRAD] = {"adagrad", {"accumulators"}, {0.1f}, 1},
		[KERNEL_MOMENTUM] = {"momentum", {"momenta"}, {0}, 2},
		[KERNEL_ADAM] = {"adam", {"momenta", "velocities"}, {0}, 6},
		[KERNEL_ADAGRAD_MOMENTUM] = {"adagrad_momentum",
					     {"accumulators", "momenta"},
					     {0},
					     5},
		[KERNEL_FTRL] = {"ftrl", {"accumulators", "linears"}, {0.1f}, 5},
		[KERNEL_LION] = {"lion", {"momenta"}, {0}, 2},
		[KERNEL_RMS_PROP] = {"rms_prop", {"ms", "mom"}, {0}, 3},
		[KERNEL_CENTERED_RMS_PROP] = {"centered_rms_prop", {"ms", "mom", "mg"}, {0}, 3},
		[KERNEL_ADADELTA] = {"adadelta", {"accumulators", "updates"}, {0}, 2},
		[KERNEL_PROXIMAL_ADAGRAD] = {"proximal_adagrad", {"accumulators"}, {0.1f}, 2},
		[KERNEL_ASSIGN] = {.name = "assign"},
		[KERNEL_LAPROP] = {"laprop", {"mu", "nu"}, {0}, 3},
		[KERNEL_PROXIMAL_YOGI] = {"proximal_yogi", {"v", "m"}, {1e-6f}, 5},
		[KERNEL_BOUNDED_ADAGRAD] = {"bounded_adagrad", {"accumulators"}, {0.1f}, 3},
		[KERNEL_ONLINE_YOGI] = {"online_yogi", {"vs", "linears"}, {0.1f}, 3},
		[KERNEL_FREQUENCY_ESTIMATOR] = {"frequency_estimator", {"last_hit_step"}, {0}, 4},
		[KERNEL_FREQUENCY_AWARE_ADAGRAD] = {"frequency_aware_adagrad",
						    {"accumulators", "counters"},
						    {0.1f},
						    6},
		[KERNEL_MDL_ADAGRAD_LIGHT] = {"mdl_adagrad_light",
					      {"accumulators", "weights", "benefits"},
					      {0.1f},
					      12},
		[KERNEL_ROWWISE_ADAGRAD] = {"rowwise_adagrad", {"accumulators"}, {0}, 2},
		[KERNEL_PARTIAL_ROWWISE_ADAM] = {"partial_rowwise_adam",
						 {"momenta", "velocities"},
						 {0},
						 3},
	};

	for (u32 k = 0; k < KERNEL_OPTIMIZER_COUNT; k++) {
		const struct kernel_optimizer *o = &kernel_optimizers[k];

		ck_assert_str_eq(o->name, all[k].name);
		ck_assert_uint_eq(o->hyper_count, all[k].hyper);
		ck_assert_uint_eq(o->slot_count,
				  !!all[k].slots[0] + !!all[k].slots[1] + !!all[k].slots[2]);
		for (u32 s = 0; s < o->slot_count; s++) {
			ck_assert_str_eq(o->slots[s].name, all[k].slots[s]);
			ck_assert(o->slots[s].value == all[k].starts[s]);
			ck_assert_int_eq(o->slots[s].one_number,
					 KERNEL_OPTIMIZER_IS_ROWWISE(k) && s + 1 == o->slot_count);
		}
	}
	ck_assert(kernel_optimizers[KERNEL_ADAM].hyper[1].value == 0.999f);
	ck_assert_str_eq(kernel_optimizers[KERNEL_FTRL].hyper[3].name, "beta");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_sgd_adagrad_momentum,
				      test_adagrad_momentum,
				      test_adagrad_epsilon,
				      test_adam_epsilon_hat,
				      test_rowwise_adagrad,
				      test_rowwise_adagrad_of_means,
				      test_partial_rowwise_adam,
				      test_max_norm,
				      test_ftrl,
				      test_ftrl_powers,
				      test_ftrl_of_a_zero_gradient,
				      test_adam,
				      test_adam_with_bias_correction,
				      test_decay_by_the_raw_rate,
				      test_flags_in_order,
				      test_ftrl_of_special_values,
				      test_ftrl_of_no_rate,
				      test_others_of_special_values,
				      test_bias_correction_over_many_steps,
				      test_powers_are_f64,
				      test_descriptions,
				      NULL};

	random_start();
	return direct_main("kernels_optimizers", tests);
}
