// SPDX-License-Identifier: MIT
/* Numbers worked by hand, in vectors and in the floats after them; what a step prepares. */
#include <math.h>

#include "../../engine/kernels/kernels.h"
#include "../../engine/kernels/optimizers.h"
#include "direct_main.h"
#include "test_kernels.h"
#include "variants.h"

#define DIM 19u /* more than one vector, and floats left over, whatever the variant */

/* A row whose elements are all alike. */
struct element {
	float w, slot[2];
};

static struct element apply(const struct kernel_ops *ops, const struct kernel_update *update,
			    struct element before, float g)
{
	float w[DIM], slots[2][DIM], gradient[DIM];
	struct kernel_update u = *update;

	for (u32 c = 0; c < DIM; c++) {
		w[c] = before.w;
		slots[0][c] = before.slot[0];
		slots[1][c] = before.slot[1];
		gradient[c] = g;
	}
	u.dim = u.stride = DIM;
	u.table = w;
	u.slots[0] = slots[0];
	u.slots[1] = slots[1];
	u.step = u.step ? u.step : 1;
	kernel_prepare(&u);
	ops->update_row(&u, 0, gradient);
	for (u32 c = 1; c < DIM; c++) {
		ck_assert(same_float(w[c], w[0]));
		ck_assert(same_float(slots[0][c], slots[0][0]));
		ck_assert(same_float(slots[1][c], slots[1][0]));
	}
	return (struct element){ w[0], { slots[0][0], slots[1][0] } };
}

/* On every variant that this processor has. */
static void expect(const struct kernel_update *u, struct element before, float g,
		   struct element after)
{
	const struct kernel_ops *ops;

	for_each_variant(ops) {
		struct element got = apply(ops, u, before, g);

		ck_assert_msg(same_float(got.w, after.w) && same_float(got.slot[0], after.slot[0]) &&
			      same_float(got.slot[1], after.slot[1]),
			      "%s: %a (%a, %a), not %a (%a, %a)", ops->name, got.w, got.slot[0],
			      got.slot[1], after.w, after.slot[0], after.slot[1]);
	}
}

#define E(...) ((struct element){ __VA_ARGS__ })

START_TEST(test_sgd_adagrad_momentum)
{
	struct kernel_update u = { .optimizer = KERNEL_SGD, .lr = 0.5f };

	expect(&u, E(10, { 0 }), 3, E(8.5f, { 0 }));
	u.optimizer = KERNEL_ADAGRAD;
	expect(&u, E(10, { 9 }), 4, E(9.6f, { 25 }));
	u.optimizer = KERNEL_MOMENTUM;
	u.hyper[0] = 0.5f;
	expect(&u, E(10, { 4 }), 1, E(8.5f, { 3 }));
	u.hyper[1] = 1;
	expect(&u, E(10, { 4 }), 1, E(8.75f, { 3 }));
}
END_TEST

/* s = 2 / sqrt(4); then beta2 1/2: 8 + 8 = 16, to the powers -1/2, -1, -1/4; then 16 + 48. */
START_TEST(test_adagrad_momentum)
{
	struct kernel_update u = { .optimizer = KERNEL_ADAGRAD_MOMENTUM, .lr = 0.5f,
				   .hyper = { 0.5f, 0, 2, 1, 1e-10f } };

	expect(&u, E(10, { 0, 4 }), 2, E(8.5f, { 4, 3 }));
	u.hyper[1] = 1;
	expect(&u, E(10, { 0, 4 }), 2, E(8.75f, { 4, 3 }));
	u.hyper[3] = 0.5f;
	expect(&u, E(10, { 16, 4 }), 4, E(8.75f, { 16, 3 }));
	u.hyper[2] = 1;
	expect(&u, E(10, { 16, 4 }), 4, E(9.3125f, { 16, 2.25f }));
	u.hyper[2] = 4;
	expect(&u, E(10, { 16, 4 }), 4, E(8.0f, { 16, 4 }));
	u.hyper[2] = 2;
	u.hyper[4] = 48;
	expect(&u, E(10, { 16, 4 }), 4, E(9.125f, { 16, 2.5f }));
}
END_TEST

/* 3 to 5 by a gradient of 4: dp = 2. Linear 1 + 4 - 2 * 1 / 0.5 = 1 in both forms. */
START_TEST(test_ftrl)
{
	struct kernel_update u = { .optimizer = KERNEL_FTRL, .lr = 0.5f,
				   .hyper = { -0.5f, 0, 2, 1, 0 } };

	expect(&u, E(1, { 9, 1 }), 4, E(-1.0f / 16, { 25, 1 }));
	u.hyper[1] = 0.25f;
	expect(&u, E(1, { 9, 1 }), 4, E(-0.75f / 16, { 25, 1 }));
	expect(&u, E(1, { 9, -1 }), 4, E(0.75f / 16, { 25, -1 }));
	u.hyper[1] = 2;
	expect(&u, E(1, { 9, 1 }), 4, E(0, { 25, 1 }));
	u.hyper[4] = 1;
	u.hyper[1] = 0.5f;
	expect(&u, E(1, { 9, 1 }), 4, E(-0.75f / 8, { 25, 1 }));
	expect(&u, E(1, { 9, -1 }), 4, E(0.75f / 8, { 25, -1 }));
	u.hyper[1] = 0;
	expect(&u, E(1, { 9, 1 }), 4, E(-1.0f / 8, { 25, 1 }));
}
END_TEST

/* Accumulators as they are, 9 and 25; then no power at all: 1 and 1. */
START_TEST(test_ftrl_powers)
{
	struct kernel_update u = { .optimizer = KERNEL_FTRL, .lr = 0.5f,
				   .hyper = { -1, 0, 2, 1, 0 } };

	expect(&u, E(1, { 9, 1 }), 4, E(27.0f / 56, { 25, -27 }));
	u.hyper[0] = 0;
	expect(&u, E(1, { 9, 1 }), 4, E(-5.0f / 8, { 25, 5 }));
}
END_TEST

/* The row is made anew from its linear: a first touch without a gradient forgets it. */
START_TEST(test_ftrl_of_a_zero_gradient)
{
	struct kernel_update u = { .optimizer = KERNEL_FTRL, .lr = 0.5f,
				   .hyper = { -0.5f, 0, 2, 1, 0 } };

	expect(&u, E(7, { 9, 0 }), 0, E(-0.0f, { 9, 0 }));
	u.hyper[1] = 0.25f;
	expect(&u, E(7, { 9, 0 }), 0, E(0, { 9, 0 }));
	expect(&u, E(7, { 25, 4 }), 0, E(-3.75f / 16, { 25, 4 }));
}
END_TEST

/* Velocity 16 and momentum 3: 15 / sqrt(16 + 9), 21 / (sqrt(16) + 3). */
START_TEST(test_adam)
{
	struct kernel_update u = { .optimizer = KERNEL_ADAM, .lr = 5,
				   .hyper = { 0.5f, 0.75f, 3, 1, 0 } };

	expect(&u, E(10, { 2, 16 }), 4, E(7, { 3, 16 }));
	u.lr = 7;
	u.hyper[3] = 0;
	expect(&u, E(10, { 2, 16 }), 4, E(7, { 3, 16 }));
}
END_TEST

/* Step 1: rate 5 * 0.5 / 0.5, epsilon 2 * 0.5. Step 2 with beta_2 0: rate 1.5 / 0.75. */
START_TEST(test_adam_with_bias_correction)
{
	struct kernel_update u = { .optimizer = KERNEL_ADAM, .lr = 5, .step = 1,
				   .hyper = { 0.5f, 0.75f, 2, 0, 1 } };

	expect(&u, E(10, { 2, 16 }), 4, E(7, { 3, 16 }));
	u.hyper[3] = 1;
	expect(&u, E(10, { 2, 16 }), 4, E(7, { 3, 16 }));
	u.step = (u64)1 << 40;
	u.hyper[2] = 1;
	expect(&u, E(10, { 2, 16 }), 4, E(7, { 3, 16 }));
	u.step = 2;
	u.lr = 1.5f;
	u.hyper[1] = 0;
	expect(&u, E(10, { 16, 9 }), 4, E(6, { 10, 16 }));
}
END_TEST

/* The decay is by the rate as it was given: 10 - 0.5 * 1.5 * 10 = 2.5. */
START_TEST(test_decay_by_the_raw_rate)
{
	struct kernel_update u = { .optimizer = KERNEL_ADAM, .lr = 1.5f, .step = 2, .decay = 0.5f,
				   .flags = KERNEL_DECAY | KERNEL_DECAY_TIMES_LR,
				   .hyper = { 0.5f, 0, 1, 0, 1 } };

	expect(&u, E(10, { 16, 9 }), 4, E(-1.5f, { 10, 16 }));
	u.flags = KERNEL_DECAY;
	expect(&u, E(10, { 16, 9 }), 4, E(1, { 10, 16 }));
}
END_TEST

/* All of them, in order, around a FTRL whose linear shows the decayed 1 and the gradient 4. */
START_TEST(test_flags_in_order)
{
	struct kernel_update u = { .optimizer = KERNEL_FTRL, .lr = 0.5f, .decay = 0.5f,
				   .flags = KERNEL_GRADIENT_SCALE | KERNEL_GRADIENT_CLIP |
					    KERNEL_DECAY | KERNEL_WEIGHT_CLIP,
				   .gradient_multiplier = 2, .gradient_min = -3,
				   .gradient_max = 4, .weight_min = -0.03125f, .weight_max = 1,
				   .hyper = { -0.5f, 0, 2, 1, 0 } };

	expect(&u, E(2, { 9, 1 }), 100, E(-0.03125f, { 25, 1 }));
	expect(&u, E(2, { 9, 1 }), 2, E(-0.03125f, { 25, 1 }));
	u.weight_min = -1;
	expect(&u, E(2, { 9, 1 }), 2, E(-0.0625f, { 25, 1 }));
}
END_TEST

/* What IEEE says; denormals stay. */
START_TEST(test_ftrl_of_special_values)
{
	struct kernel_update u = { .optimizer = KERNEL_FTRL, .lr = 0.5f,
				   .hyper = { -0.5f, 0, 2, 1, 0 } };

	expect(&u, E(1, { 25, 0 }), 0x1p-140f, E(-0x1p-144f, { 25, 0x1p-140f }));
	expect(&u, E(1, { 25, 0 }), NAN, E(NAN, { NAN, NAN }));
	expect(&u, E(1, { 25, 0 }), INFINITY, E(NAN, { INFINITY, NAN }));
	expect(&u, E(1, { 25, INFINITY }), 0, E(-INFINITY, { 25, INFINITY }));
	expect(&u, E(1, { -1, 0 }), 0, E(NAN, { -1, NAN }));
	u.hyper[1] = 1;
	expect(&u, E(1, { 25, NAN }), 0, E(NAN, { 25, NAN }));
	expect(&u, E(1, { 25, INFINITY }), 0, E(-INFINITY, { 25, INFINITY }));
}
END_TEST

START_TEST(test_ftrl_of_no_rate)
{
	struct kernel_update u = { .optimizer = KERNEL_FTRL, .hyper = { -0.5f, 0, 2, 1, 0 } };

	expect(&u, E(1, { 9, 1 }), 4, E(NAN, { 25, -INFINITY }));
	expect(&u, E(1, { 9, 1 }), 0, E(NAN, { 9, NAN }));
	u.hyper[4] = 1;
	expect(&u, E(1, { 9, 1 }), 4, E(1.0f / 6, { 25, -1 }));
}
END_TEST

START_TEST(test_others_of_special_values)
{
	struct kernel_update u = { .optimizer = KERNEL_ADAM, .lr = 1, .hyper = { 0, 0, 1, 0, 0 } };

	expect(&u, E(1, { 3, 3 }), INFINITY, E(NAN, { INFINITY, INFINITY }));
	expect(&u, E(1, { 3, 3 }), 0x1p-149f, E(1, { 0x1p-149f, 0 }));
	expect(&u, E(1, { 3, -9 }), 0, E(1, { 0, 0 }));
	u.optimizer = KERNEL_ADAGRAD_MOMENTUM;
	u.hyper[1] = 0;
	u.hyper[2] = 2;
	u.hyper[3] = 1;
	u.hyper[4] = 1;
	expect(&u, E(1, { 0, 3 }), INFINITY, E(NAN, { INFINITY, NAN }));
	expect(&u, E(0, { 0, 3 }), 0x1p-149f, E(-0x1p-149f, { 0, 0x1p-149f }));
	expect(&u, E(1, { -1, 3 }), 0, E(NAN, { -1, NAN }));
	expect(&u, E(1, { -4, 3 }), 1, E(NAN, { -3, NAN }));
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
		struct kernel_update u = { .optimizer = KERNEL_ADAM, .lr = 0.001f,
					   .hyper = { 0.9f, 0.999f, 1e-8f, 0, 1 } };
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

START_TEST(test_descriptions)
{
	static const struct {
		const char *name, *slots[2];
		float starts[2];
		u32 hyper;
	} all[] = {
		[KERNEL_SGD] = { .name = "sgd" },
		[KERNEL_ADAGRAD] = { "adagrad", { "accumulators" }, { 0.1f }, 0 },
		[KERNEL_MOMENTUM] = { "momentum", { "momenta" }, { 0 }, 2 },
		[KERNEL_ADAM] = { "adam", { "momenta", "velocities" }, { 0 }, 5 },
		[KERNEL_ADAGRAD_MOMENTUM] = { "adagrad_momentum", { "accumulators", "momenta" },
					      { 0 }, 5 },
		[KERNEL_FTRL] = { "ftrl", { "accumulators", "linears" }, { 0.1f }, 5 },
	};

	for (u32 k = 0; k < KERNEL_OPTIMIZER_COUNT; k++) {
		const struct kernel_optimizer *o = &kernel_optimizers[k];

		ck_assert_str_eq(o->name, all[k].name);
		ck_assert_uint_eq(o->hyper_count, all[k].hyper);
		ck_assert_uint_eq(o->slot_count, !!all[k].slots[0] + !!all[k].slots[1]);
		for (u32 s = 0; s < o->slot_count; s++) {
			ck_assert_str_eq(o->slots[s].name, all[k].slots[s]);
			ck_assert(o->slots[s].value == all[k].starts[s]);
		}
	}
	ck_assert(kernel_optimizers[KERNEL_ADAM].hyper[1].value == 0.999f);
	ck_assert_str_eq(kernel_optimizers[KERNEL_FTRL].hyper[3].name, "beta");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_sgd_adagrad_momentum, test_adagrad_momentum, test_ftrl, test_ftrl_powers,
		test_ftrl_of_a_zero_gradient, test_adam, test_adam_with_bias_correction,
		test_decay_by_the_raw_rate, test_flags_in_order, test_ftrl_of_special_values,
		test_ftrl_of_no_rate, test_others_of_special_values,
		test_bias_correction_over_many_steps, test_descriptions, NULL
	};

	random_start();
	return direct_main("kernels_optimizers", tests);
}
