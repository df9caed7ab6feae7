// SPDX-License-Identifier: MIT
/* Lookups and scales of one variant. */
#include "bits.h"

#define ROWS 60u
#define SAMPLES 30u
#define MOST_DIM 130u

struct bags {
	u64 bag[SAMPLES + 1];
	u64 rows[SAMPLES * 20];
	u32 narrow[SAMPLES * 20]; /* the same without rows that are not there */
	float *weights, *scales;
};

static void bags_draw(struct bags *b)
{
	b->bag[0] = 0;
	for (u32 s = 0; s < SAMPLES; s++)
		b->bag[s + 1] = b->bag[s] + (random_below(3) ? random_below(20) : 0);
	for (u64 k = 0; k < b->bag[SAMPLES]; k++) {
		b->narrow[k] = (u32)random_below(ROWS);
		b->rows[k] = random_below(10) ? b->narrow[k] : KERNEL_ROW_ZERO;
	}
	b->weights = random_values(b->bag[SAMPLES]);
	b->scales = random_values(SAMPLES);
}

static void bags_free(struct bags *b)
{
	free(b->weights);
	free(b->scales);
}

static void looked_up(const struct kernel_ops *ops, bool weighted, bool scaled, bool quantized,
		      const char *title)
{
	struct kernel_quantization levels;
	static float out[SAMPLES * MOST_DIM];
	static const float zero[MOST_DIM];
	struct sha256 hash;

	kernel_quantization_set(&levels, 100, 0xbf400000, 0x3f200000); /* -0.75, 0.625 */
	sha256_init(&hash);
	for (u32 dim = 1; dim <= MOST_DIM; dim += dim < 40 ? 1 : 7) {
		float *table = random_values(ROWS * dim);
		struct bags b;
		struct kernel_bag_work w = {.table = table,
					    .stride = dim,
					    .dim = dim,
					    .prefetch = dim % 3,
					    .rows = b.rows,
					    .bag = b.bag,
					    .zero_row = zero,
					    .out = out,
					    .out_stride = dim};

		bags_draw(&b);
		w.rows_count = b.bag[SAMPLES];
		w.weights = weighted ? b.weights : NULL;
		w.scales = scaled ? b.scales : NULL;
		w.quantization = quantized ? &levels : NULL;
		ops->lookup(&w, 0, SAMPLES);
		hash_floats(&hash, out, (u64)SAMPLES * dim);
		w.narrow = b.narrow;
		ops->lookup(&w, 0, SAMPLES);
		hash_floats(&hash, out, (u64)SAMPLES * dim);
		bags_free(&b);
		free(table);
	}
	hash_print(&hash, title);
}

static void scaled(const struct kernel_ops *ops, u32 combiner, const char *title)
{
	static float coef[SAMPLES * 20];
	struct sha256 hash;

	sha256_init(&hash);
	for (u32 round = 0; round < 100; round++) {
		float scales[SAMPLES];
		struct bags b;
		struct kernel_scale_work w = {
			.combiner = combiner, .bag = b.bag, .scales = scales, .coef = coef};

		bags_draw(&b);
		w.weights = round & 1 ? b.weights : NULL;
		ops->scales(&w, 0, SAMPLES);
		hash_floats(&hash, scales, SAMPLES);
		hash_floats(&hash, coef, b.bag[SAMPLES]);
		bags_free(&b);
	}
	hash_print(&hash, title);
}

void bits_of_rows(const struct kernel_ops *ops)
{
	random_start();
	looked_up(ops, false, false, false, "lookup");
	looked_up(ops, true, false, false, "lookup weighted");
	looked_up(ops, false, true, false, "lookup scaled");
	looked_up(ops, true, true, false, "lookup weighted and scaled");
	looked_up(ops, false, false, true, "lookup quantized");
	looked_up(ops, true, true, true, "lookup quantized, weighted and scaled");
	scaled(ops, KERNEL_SUM, "scales sum");
	scaled(ops, KERNEL_MEAN, "scales mean");
	scaled(ops, KERNEL_SQRTN, "scales sqrtn");
}
