// SPDX-License-Identifier: MIT
/* Prints results that could differ by compiler but not by kernel variant: scalar math, row fill. */
#include "../../engine/kernels/fill.h"
#include "../../engine/kernels/fma_exact.h"
#include "../../engine/kernels/math64.h"
#include "../../engine/kernels/normal.h"
#include "bits.h"

#define OPERANDS 40000u

static float any_float(void)
{
	return float_of((u32)random_u64());
}

static void fused(void)
{
	struct sha256 hash;

	sha256_init(&hash);
	for (u32 i = 0; i < OPERANDS; i++) {
		float a = any_float(), b = any_float(), c = random_below(2) ? -a * b : any_float();

		hash_float(&hash, fma_exact(a, b, c));
	}
	hash_print(&hash, "fma_exact");
}

static void roots(void)
{
	struct sha256 hash;

	sha256_init(&hash);
	for (u32 i = 0; i < OPERANDS; i++) {
		float x = any_float();

		hash_float(&hash, root32(x));
		hash_double(&hash, root64(x * (double)any_float()));
	}
	hash_print(&hash, "roots");
}

static void functions(void)
{
	static const double powers[] = {0.5, -0.5, 0.75, -1.0, 1.0 / 3.0, 2.0, -0.3};
	struct sha256 hash;

	sha256_init(&hash);
	for (u32 i = 0; i < OPERANDS; i++) {
		double x = math64_of_bits(random_u64());
		float base = any_float();

		hash_double(&hash, math64_log(x));
		hash_double(&hash, math64_exp(x));
		hash_double(&hash, math64_exp(745.0 * random_unit()));
		hash_double(&hash, math64_pow(base, powers[i % 7]));
		hash_double(&hash, math64_power(base, random_below(100000)));
		hash_double(&hash, normal_quantile(0.5 + 0.4999 * random_unit()));
	}
	hash_print(&hash, "log, exp, pow, power, quantile");
}

static void filled(u32 kind, const char *title)
{
	static float rows[200 * 37];
	struct kernel_fill f = {.kind = kind,
				.seed = 12345,
				.dim = 37,
				.a = -0.25f,
				.b = 0.5f,
				.out = rows,
				.stride = 37,
				.first_row = 5,
				.row_step = 3};
	struct sha256 hash;

	sha256_init(&hash);
	for (f.slot = 0; f.slot < 3; f.slot++) {
		kernel_fill_rows(&f, 0, 200);
		hash_floats(&hash, rows, 200 * 37);
	}
	hash_print(&hash, title);
}

void bits_of_numbers(void)
{
	random_start();
	fused();
	roots();
	functions();
	filled(KERNEL_FILL_CONSTANT, "fill constant");
	filled(KERNEL_FILL_UNIFORM, "fill uniform");
	filled(KERNEL_FILL_TRUNCATED_NORMAL, "fill truncated normal");
}
