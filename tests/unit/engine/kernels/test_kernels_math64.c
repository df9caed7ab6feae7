// SPDX-License-Identifier: MIT
/*
 * Logarithm, exponential and powers in f64 arithmetic, compared with those of the C library in
 * units of the last place.
 */
#include <check.h>
#include <math.h>

#include "engine/kernels/math64.h"
#include "suite.h"
#include "test_kernels.h"

static double ulps(double got, long double want)
{
	int exponent;

	frexpl(want, &exponent);
	return (double)(fabsl(got - want) /
			ldexpl(1.0L, (exponent < -1021 ? -1021 : exponent) - 53));
}

START_TEST(test_log_within_2_ulp)
{
	for (u32 i = 0; i < 500000; i++) {
		u64 bits = random_below(0x7ff0000000000000);
		double x = i % 2 ? 0.5 + (double)(random_u64() >> 11) * 0x1p-53
				 : math64_of_bits(bits);

		ck_assert_msg(ulps(math64_log(x), logl(x)) <= 2.0, "log(%a) = %a", x,
			      math64_log(x));
	}
	ck_assert(math64_log(1.0) == 0.0);
	ck_assert(math64_log(0.0) == -INFINITY);
	ck_assert(math64_log(INFINITY) == INFINITY);
	ck_assert(isnan(math64_log(-1.0)));
	ck_assert(isnan(math64_log(NAN)));
}
END_TEST

START_TEST(test_exp_within_2_ulp)
{
	for (u32 i = 0; i < 500000; i++) {
		double x = (double)(s64)random_u64() * 0x1p-63 * (i % 2 ? 1.0 : 745.0);

		if (x > 709.7)
			continue;
		ck_assert_msg(ulps(math64_exp(x), expl(x)) <= 2.0, "exp(%a) = %a", x,
			      math64_exp(x));
	}
	ck_assert(math64_exp(0.0) == 1.0);
	ck_assert(math64_exp(-INFINITY) == 0.0);
	ck_assert(math64_exp(INFINITY) == INFINITY);
	ck_assert(isnan(math64_exp(NAN)));
}
END_TEST

/* Powers of f32 numbers. Exponents go beyond 2^33: only then does the number next to 1 vanish. */
START_TEST(test_power_within_1_ulp)
{
	for (u32 i = 0; i < 200000; i++) {
		float x = float_of(i % 2 ? 0x3f800000 - 1 - (u32)random_below(1u << 20)
					 : (u32)random_below(0x3f800000));
		u64 n = random_below(i % 3 ? (u64)1 << random_below(36) : 20);
		long double want = powl(x, n);

		if (want < 0x1p-900L)
			continue;
		ck_assert_msg(ulps(math64_power(x, n), want) <= 1.0, "%a ^ %llu = %a", x,
			      (unsigned long long)n, math64_power(x, n));
	}
	ck_assert(math64_power(0.75, 0) == 1.0);
	ck_assert(math64_power(0.75, 1) == 0.75);
	ck_assert(math64_power(0.75, 5) == 0.2373046875);
	ck_assert(math64_power(0.0, 0) == 1.0);
	ck_assert(math64_power(0.0, 9) == 0.0);
	ck_assert(math64_power(1.0, ~(u64)0) == 1.0);
	ck_assert(math64_power(float_of(0x3f7fffff), ~(u64)0) == 0.0);
}
END_TEST

START_TEST(test_pow_of_floats)
{
	for (u32 i = 0; i < 300000; i++) {
		float x = float_of((u32)random_below(0x7f800000));
		double y = random_unit() * (i % 2 ? 4.0 : 1.0 / 8);
		long double want = powl(x, y);

		if (want < 0x1p-149L || want > 0x1p128L)
			continue;
		ck_assert_msg(fabsl(math64_pow(x, y) - want) <= 0x1p-43L * want, "%a ^ %a = %a", x,
			      y, math64_pow(x, y));
	}
	ck_assert(math64_pow(NAN, 0.0) == 1.0);
	ck_assert(math64_pow(0.0f, 0.25) == 0.0);
	ck_assert(math64_pow(-0.0f, -0.25) == INFINITY);
	ck_assert(math64_pow(INFINITY, 0.25) == INFINITY);
	ck_assert(math64_pow(INFINITY, -0.25) == 0.0);
	ck_assert(isnan(math64_pow(-2.0f, 2.0)));
	ck_assert(isnan(math64_pow(NAN, 1.0)));
	ck_assert((float)math64_pow(16.0f, -0.25) == 0.5f);
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_log_within_2_ulp);
	tcase_add_test(tcase, test_exp_within_2_ulp);
	tcase_add_test(tcase, test_power_within_1_ulp);
	tcase_add_test(tcase, test_pow_of_floats);
}

int main(void)
{
	return suite_main("kernels_math64", add);
}
