// SPDX-License-Identifier: MIT
/*
 * Fills rows with a constant, with uniform or with truncated normal numbers. Each number depends on
 * the seed, the slot, the row and the column alone, so rows may be filled in any order and by any
 * number of cores. The file is compiled once, and not for each variant of the kernels.
 *
 * The caller is inside an FP section. The functions write only the rows that they are given.
 */
#include "fill.h"
#include "normal.h"
#include "philox.h"

#define WORDS 4u

static float float_below(float x)
{
	union {
		float value;
		u32 bits;
	} u = { .value = x };

	if (x == 0.0f)
		u.bits = 0x80000001;
	else
		u.bits += x > 0.0f ? ~(u32)0 : 1;
	return u.value;
}

/* Rounding to float may reach the limit that is excluded. */
static float draw_uniform(const struct kernel_fill *f, u32 word)
{
	double low = f->a, high = f->b;
	float x = (float)(low + word * 0x1p-32 * (high - low));

	if (x < f->b)
		return x;
	x = float_below(f->b);
	return x < f->a ? f->a : x;
}

static float draw_truncated_normal(const struct kernel_fill *f, u32 word)
{
	double u = (word + 0.5) * 0x1p-32;
	double z = normal_quantile(NORMAL_CDF_MINUS_2 + NORMAL_WITHIN_2 * u);

	z = z < -2.0 ? -2.0 : z > 2.0 ? 2.0 : z;
	return (float)((double)f->a + (double)f->b * z);
}

static float value_of(const struct kernel_fill *f, u32 word)
{
	return f->kind == KERNEL_FILL_UNIFORM ? draw_uniform(f, word) :
						draw_truncated_normal(f, word);
}

static void fill_random(const struct kernel_fill *f, u64 row, float *out)
{
	const u32 key[2] = { (u32)f->seed, (u32)(f->seed >> 32) };
	u32 counter[4] = { (u32)row, (u32)(row >> 32), 0, f->slot };
	u32 words[WORDS];

	for (u32 c = 0; c < f->dim; c++) {
		u32 column = f->first_column + c;

		if (!c || column % WORDS == 0) {
			counter[2] = column / WORDS;
			philox4x32(counter, key, words);
		}
		out[c] = value_of(f, words[column % WORDS]);
	}
}

void kernel_fill_rows(const struct kernel_fill *f, u64 first, u64 last)
{
	for (u64 i = first; i < last; i++) {
		float *out = f->out + i * f->stride;

		if (f->kind == KERNEL_FILL_CONSTANT) {
			for (u32 c = 0; c < f->dim; c++)
				out[c] = f->a;
			continue;
		}
		fill_random(f, f->first_row + i * f->row_step, out);
	}
}
