// SPDX-License-Identifier: MIT
/* The optimizers of optimizers_proto.h, by numbers worked by hand. */
#include <math.h>

#include "engine/kernels/optimizers.h"
#include "direct_main.h"
#include "element.h"

/* The momenta mixed are 1, then 0, which moves nothing; then -1. */
START_TEST(test_lion)
{
	struct kernel_update u = {.optimizer = KERNEL_LION, .lr = 0.5f, .hyper = {0.5f, 0.25f}};

	expect(&u, E(10, {4}), -2, E(9.5f, {-0.5f}));
	expect(&u, E(10, {2}), -2, E(10, {-1}));
	expect(&u, E(10, {2}), -4, E(10.5f, {-2.5f}));
	expect(&u, E(10, {2}), NAN, E(NAN, {NAN}));
}
END_TEST

/* ms 9 and, centered, mg 3: 8 / sqrt(9 + 7), 8 / sqrt(9 - 9 + 16). */
START_TEST(test_rms_props)
{
	struct kernel_update u = {.optimizer = KERNEL_RMS_PROP, .lr = 2, .hyper = {0.5f, 0.5f, 7}};

	expect(&u, E(10, {2, 4}), 4, E(6, {9, 4}));
	u.hyper[1] = 0;
	expect(&u, E(10, {2, 4}), 4, E(8, {9, 2}));
	u.optimizer = KERNEL_CENTERED_RMS_PROP;
	u.hyper[2] = 16;
	expect(&u, E(10, {2, 4, 2}), 4, E(8, {9, 2, 3}));
	u.hyper[1] = 0.5f;
	expect(&u, E(10, {2, 4, 2}), 4, E(6, {9, 4, 3}));
}
END_TEST

/* 4 * sqrt(9) / sqrt(16) */
START_TEST(test_adadelta)
{
	struct kernel_update u = {.optimizer = KERNEL_ADADELTA, .lr = 0.5f, .hyper = {0.5f, 1}};

	expect(&u, E(10, {14, 8}), 4, E(8.5f, {15, 8.5f}));
}
END_TEST

/* A rate of 2.5 / 5: to 8, by 1 nearer to zero, over 2. */
START_TEST(test_proximal_adagrad)
{
	struct kernel_update u = {
		.optimizer = KERNEL_PROXIMAL_ADAGRAD, .lr = 2.5f, .hyper = {2, 2}};

	expect(&u, E(10, {9}), 4, E(3.5f, {25}));
	expect(&u, E(-10, {9}), -4, E(-3.5f, {25}));
	u.hyper[0] = 20;
	expect(&u, E(10, {9}), 4, E(0, {25}));
	u.hyper[0] = 0;
	expect(&u, E(10, {9}), 4, E(4, {25}));
	u.hyper[1] = 0;
	expect(&u, E(10, {9}), 4, E(8, {25}));
}
END_TEST

START_TEST(test_assign)
{
	struct kernel_update u = {.optimizer = KERNEL_ASSIGN, .lr = 0.5f};

	expect(&u, E(10, {0}), 3, E(3, {0}));
	expect(&u, E(10, {0}), -0.0f, E(-0.0f, {0}));
}
END_TEST

/* Step 1 forgets nu; a late one decays it by b2: both 16. */
START_TEST(test_laprop)
{
	struct kernel_update u = {
		.optimizer = KERNEL_LAPROP, .lr = 2, .step = 1, .hyper = {0, 0.75f, 7}};

	expect(&u, E(10, {9, 100}), 3, E(8.5f, {0.75f, 16}));
	u.step = (u64)1 << 40;
	expect(&u, E(10, {9, 16}), 3, E(8.5f, {0.75f, 16}));
}
END_TEST

/* v falls to 9, rises to 9, stays 9; m 2; a rate of 2 / 4. */
START_TEST(test_proximal_yogi)
{
	struct kernel_update u = {
		.optimizer = KERNEL_PROXIMAL_YOGI, .lr = 2, .hyper = {2, 2, 0.5f, 0.5f, 1}};

	expect(&u, E(10, {11, 2}), 2, E(4, {9, 2}));
	expect(&u, E(10, {1, 0}), 4, E(4, {9, 2}));
	expect(&u, E(10, {9, 1}), 3, E(4, {9, 2}));
	u.hyper[0] = u.hyper[1] = 0;
	expect(&u, E(10, {9, 1}), 3, E(9, {9, 2}));
}
END_TEST

START_TEST(test_bounded_adagrad)
{
	struct kernel_update u = {
		.optimizer = KERNEL_BOUNDED_ADAGRAD, .lr = 0.5f, .hyper = {1, 0, 16}};

	expect(&u, E(10, {9}), 4, E(9.5f, {16}));
	u.hyper[0] = 0;
	expect(&u, E(10, {4}), 4, E(9, {16}));
	expect(&u, E(10, {64}), 4, E(9.75f, {16}));
	u.hyper[2] = 0;
	u.hyper[1] = 0.25f;
	expect(&u, E(10, {4}), 4, E(9.75f, {20}));
	expect(&u, E(10, {4}), -4, E(10.25f, {20}));
	expect(&u, E(10, {256}), 4, E(9.875f, {272}));
}
END_TEST

/* v from 1 to 9: the roots 1 and 3 take FTRL's way. */
START_TEST(test_online_yogi)
{
	struct kernel_update u = {
		.optimizer = KERNEL_ONLINE_YOGI, .lr = 0.5f, .hyper = {0, 1, 0.5f}};

	expect(&u, E(1, {1, 1}), 4, E(-1.0f / 8, {9, 1}));
	u.hyper[0] = 0.25f;
	expect(&u, E(1, {1, 1}), 4, E(-0.75f / 8, {9, 1}));
	expect(&u, E(1, {1, -1}), 4, E(0.75f / 8, {9, -1}));
	u.hyper[0] = 2;
	expect(&u, E(1, {1, 1}), 4, E(0, {9, 1}));
}
END_TEST

/* Distances of 4: mixed in, and just at the threshold; then 20, held at 8. */
START_TEST(test_frequency_estimator)
{
	struct kernel_update u = {
		.optimizer = KERNEL_FREQUENCY_ESTIMATOR, .lr = 20, .hyper = {0.25f, 8, 2, 1}};

	expect(&u, E(3, {16}), 99, E(3.25f, {20}));
	expect(&u, E(2, {16}), 99, E(4, {20}));
	expect(&u, E(3, {0}), -99, E(8, {20}));
	expect(&u, E(16, {0}), 0, E(14, {20}));
}
END_TEST

/* Step 8 over 2 touches: 4, held at 1.5, and the root 2; a of 16 because it is the least. */
START_TEST(test_frequency_aware_adagrad)
{
	struct kernel_update u = {.optimizer = KERNEL_FREQUENCY_AWARE_ADAGRAD,
				  .lr = 0.5f,
				  .step = 8,
				  .hyper = {0.5f, 0.25f, 1.5f, 1, 0.5f, 16}};

	expect(&u, E(2, {12, 1}), 3, E(0.9375f, {16, 2}));
	u.hyper[2] = 8;
	expect(&u, E(2, {12, 1}), 3, E(0, {16, 2}));
	expect(&u, E(2, {14, 1}), 3, E(0, {16, 2}));
	u.hyper[3] = 0.5f;
	expect(&u, E(2, {14, 1}), 3, E(0.75f, {16, 2}));
	expect(&u, E(-2, {14, 1}), 3, E(-2.25f, {16, 2}));
	expect(&u, E(0, {14, 1}), 3, E(-0.75f, {16, 2}));
	u.hyper[4] = 1;
	expect(&u, E(0, {27, 1}), 3, E(-0.5f, {36, 2}));
}
END_TEST

/* The accumulator rises from 0 to 16, so that the rate of 2 is 0.5; the trained weight is 4. */
START_TEST(test_mdl_adagrad_light)
{
	struct kernel_update u = {
		.optimizer = KERNEL_MDL_ADAGRAD_LIGHT, .lr = 2, .hyper = {0, -0.5f}};

	expect(&u, E(3, {0, 1, 0.5f}), 4, E(2, {16, 0, -15.5f}));
	u.hyper[0] = 1;
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(1, {16, 0, -15.5f}));
	u.hyper[0] = 0;
	u.hyper[1] = -1;
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(3.5f, {16, 0, -15.5f}));
	u.hyper[1] = 0;
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(-4, {16, 0, -15.5f}));
}
END_TEST

/* Benefits of 16.5 and -15.5. */
START_TEST(test_mdl_adagrad_light_shares)
{
	struct kernel_update u = {
		.optimizer = KERNEL_MDL_ADAGRAD_LIGHT, .lr = 2, .hyper = {[1] = -0.5f, [11] = 1}};

	expect(&u, E(3, {0, 1, 0.5f}), -4, E(6, {16, 0, 16.5f}));
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(0, {16, 2, -15.5f}));
	expect(&u, E(3, {0, 1, 0.5f}), NAN, E(NAN, {NAN, NAN, NAN}));
	u.hyper[2] = 16.5f;
	expect(&u, E(3, {0, 1, 0.5f}), -4, E(6, {16, 0, 16.5f}));
	u.hyper[2] = 16.75f;
	expect(&u, E(3, {0, 1, 0.5f}), -4, E(0, {16, 6, 16.5f}));
	u.hyper[2] = 0;
	u.hyper[5] = 0.25f;
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(0.5f, {16, 1.5f, -15.5f}));
	u.hyper[3] = 33;
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(0.5f, {16, 1.5f, -15.5f}));
	expect(&u, E(3, {0, 1, 0.5f}), -4, E(3.75f, {16, 2.25f, 16.5f}));
	u.hyper[3] = 8;
	expect(&u, E(3, {0, 1, 0.5f}), -4, E(6, {16, 0, 16.5f}));
	u.hyper[2] = 12.5f;
	u.hyper[5] = 0;
	expect(&u, E(3, {0, 1, 0.5f}), -4, E(3, {16, 3, 16.5f}));
}
END_TEST

/* One number of it each, then all: -16, -8, -4; -3.5, -1.5, -1, -0.5. */
START_TEST(test_mdl_adagrad_light_benefits)
{
	struct kernel_update u = {.optimizer = KERNEL_MDL_ADAGRAD_LIGHT, .lr = 2};
	const struct {
		float hyper[12], up, down;
	} cases[] = {
		{{[1] = -0.5f, [4] = 16}, 8.5f, -7.5f},
		{{[1] = -0.5f, [7] = 2}, 2.5f, -1.5f},
		{{[1] = -0.5f, [6] = 0.5f}, 16.5f, -7.75f},
		{{[1] = -0.5f, [6] = 0.5f, [2] = 1}, 16.5f, -7.25f},
		{{[1] = -0.5f, [8] = 4}, 4, -4},
		{{[1] = -0.5f, [9] = 3}, 16.5f, -15.5f},
		{{[1] = -0.5f, [2] = 1, [9] = 3, [10] = 1}, 16.5f, -2},
	};

	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (u32 k = 0; k < 12; k++)
			u.hyper[k] = cases[i].hyper[k];
		expect(&u, E(3, {0, 1, 0.5f}), -4, E(6, {16, 0, cases[i].up}));
		expect(&u, E(3, {0, 1, 0.5f}), 4, E(2, {16, 0, cases[i].down}));
	}
	u = (struct kernel_update){.optimizer = KERNEL_MDL_ADAGRAD_LIGHT,
				   .lr = 2,
				   .hyper = {1, -0.5f, 0.5f, 2, 16, 0.25f, 0.5f, 4, 1, 1, 1, 1}};
	expect(&u, E(3, {0, 1, 0.5f}), 4, E(0.25f, {16, 0.75f, -0.5f}));
}
END_TEST

START_TEST(test_steps_that_programs_give)
{
	ck_assert_uint_eq(kernel_step(0), 1);
	ck_assert_uint_eq(kernel_step(0x3f800000), 1);
	ck_assert_uint_eq(kernel_step(0x40200000), 2); /* 2.5 */
	ck_assert_uint_eq(kernel_step(0x4b800000), 1 << 24);
	ck_assert_uint_eq(kernel_step(0xc0000000), 1);
	ck_assert_uint_eq(kernel_step(0x7fc00000), 1);
	ck_assert_uint_eq(kernel_step(0x7f800000), (u64)1 << 63);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {test_lion,
				      test_rms_props,
				      test_adadelta,
				      test_proximal_adagrad,
				      test_assign,
				      test_laprop,
				      test_proximal_yogi,
				      test_bounded_adagrad,
				      test_online_yogi,
				      test_frequency_estimator,
				      test_frequency_aware_adagrad,
				      test_mdl_adagrad_light,
				      test_mdl_adagrad_light_shares,
				      test_mdl_adagrad_light_benefits,
				      test_steps_that_programs_give,
				      NULL};

	return direct_main("kernels_proto", tests);
}
