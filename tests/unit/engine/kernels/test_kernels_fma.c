// SPDX-License-Identifier: MIT
/*
 * fma_exact() against the processor's fused multiply-add, on special values and on random ones
 * where rounding is hard.
 */
#include <check.h>
#include <math.h>

#include "engine/kernels/vec_portable.h"
#include "suite.h"
#include "test_kernels.h"

static void expect_fma(float a, float b, float c)
{
	float got = fma_exact(a, b, c), want = fmaf(a, b, c);
	vec lanes = vec_fma((vec){a, 0.5f, b, a}, (vec){b, 3.0f, a, b}, (vec){c, 2.0f, c, c});

	if (!same_float(got, want))
		ck_abort_msg("fma(%a, %a, %a) = %a, fmaf gives %a", a, b, c, got, want);
	for (u32 i = 0; i < VEC; i++)
		if (!same_float(lanes[i], i == 1 ? 3.5f : want))
			ck_abort_msg("lane %u: fma(%a, %a, %a) = %a, fmaf gives %a", i, a, b, c,
				     lanes[i], want);
}

START_TEST(test_fma_special_classes)
{
	static const u32 magnitudes[] = {
		0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x003fffff, 0x00400000, 0x007ffffe,
		0x007fffff, 0x00800000, 0x00800001, 0x00ffffff, 0x0b800000, 0x0bffffff, 0x1f800000,
		0x1fffffff, 0x20000000, 0x33800000, 0x33800001, 0x34000000, 0x3f000000, 0x3f7fffff,
		0x3f800000, 0x3f800001, 0x3fc00000, 0x3fffffff, 0x40000000, 0x40400000, 0x4b7fffff,
		0x4b800000, 0x4b800001, 0x5f7fffff, 0x5f800000, 0x7e800000, 0x7effffff, 0x7f000000,
		0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
	};
	const u32 n = 2 * sizeof(magnitudes) / sizeof(magnitudes[0]);

	for (u32 i = 0; i < n * n * n; i++) {
		u32 a = i % n, b = i / n % n, c = i / n / n;

		expect_fma(float_of(magnitudes[a / 2] | (a & 1) << 31),
			   float_of(magnitudes[b / 2] | (b & 1) << 31),
			   float_of(magnitudes[c / 2] | (c & 1) << 31));
	}
}
END_TEST

/* 1e8 in all; under a sanitizer, where each takes 50 times as long, a sample of them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPERANDS 500000u
#else
#define OPERANDS 25000000u
#endif

struct operands {
	float a, b, c;
};

/* Sign and mantissa of so many bits from @r, the exponent between two limits. */
static float drawn(u32 r, u32 bits, u32 least, u32 most)
{
	u32 mantissa = r & 0x007fffff & ~(0x007fffffu >> (bits - 1));
	u32 exponent = least + (u32)(((u64)(r * 2654435761u) * (most - least + 1)) >> 32);

	return float_of((r & 0x80000000) | exponent << 23 | mantissa);
}

/* Any bits at all. */
static struct operands draw_any(u64 r, u64 more)
{
	return (struct operands){float_of((u32)r), float_of((u32)(r >> 32)), float_of((u32)more)};
}

/* The sum nearly cancels: the addend is the rounded product or within 3 ulp of it. */
static struct operands draw_cancelling(u64 r, u64 more)
{
	float a = drawn((u32)r, 24, 40, 180), b = drawn((u32)(r >> 32), 24, 90, 150);

	return (struct operands){a, b, float_of((bits_of(-(a * b)) & ~3u) | (more & 3))};
}

/* The product is often half an ulp between two floats, and the addend far below it. */
static struct operands draw_tie(u64 r, u64 more)
{
	return (struct operands){drawn((u32)r, 13, 100, 150), drawn((u32)(r >> 32), 12, 100, 150),
				 drawn((u32)more, 24, 1, 130)};
}

/* The same where the result is denormal: (1 + x)(1 - x) of half the least float. */
static struct operands draw_denormal_tie(u64 r, u64 more)
{
	u32 exponent = 40 + (u32)(r >> 8) % 40; /* exponent of a; the product's is -150 */
	float x = float_of((127 - 13 - (u32)(r >> 16) % 11) << 23);
	float a = float_of(exponent << 23), b = float_of((104 - exponent) << 23);

	return (struct operands){a * (1.0f + x), (r & 1 ? b : -b) * (1.0f - x),
				 float_of((u32)more & 0x80ffffff)};
}

static const struct {
	const char *what;
	struct operands (*draw)(u64 r, u64 more);
	bool rounds_twice; /* that the plain sum in double goes wrong is part of the draw */
} draws[] = {
	{"any bits", draw_any, false},
	{"cancelling", draw_cancelling, false},
	{"ties", draw_tie, true},
	{"denormal ties", draw_denormal_tie, true},
};

START_TEST(test_fma_random)
{
	u64 wrong = 0;

	for (u32 i = 0; i < OPERANDS; i++) {
		u64 r = random_u64();
		struct operands o = draws[_i].draw(r, random_u64());
		float twice = (float)((double)o.a * o.b + o.c);

		expect_fma(o.a, o.b, o.c);
		wrong += !same_float(twice, fmaf(o.a, o.b, o.c));
	}
	printf("# %s: %llu of %u go wrong when rounded twice\n", draws[_i].what,
	       (unsigned long long)wrong, OPERANDS);
	if (draws[_i].rounds_twice)
		ck_assert_uint_gt(wrong, OPERANDS / 1000);
}
END_TEST

/* The addend near the product, or half an ulp of it: where rounding twice goes wrong. */
START_TEST(test_fma_random_close_exponents)
{
	for (u32 i = 0; i < 5000000; i++) {
		u64 r = random_u64();
		float a = float_of(((u32)r & 0x807fffff) | 0x3f800000);
		float b = float_of(((u32)(r >> 32) & 0x80fff000) | 0x3f000000);
		u32 exponent = 64 + (u32)random_below(127);
		float c = float_of(((u32)random_u64() & 0x80700003) | exponent << 23);

		expect_fma(a, b, c);
		expect_fma(a, b, -(a * b));
		expect_fma(a * 0x1p-70f, b * 0x1p-70f, float_of((u32)random_below(0x01000000)));
	}
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, test_fma_special_classes);
	tcase_add_loop_test(tcase, test_fma_random, 0, sizeof(draws) / sizeof(draws[0]));
	tcase_add_test(tcase, test_fma_random_close_exponents);
}

int main(void)
{
	return suite_main("kernels_fma", add);
}
