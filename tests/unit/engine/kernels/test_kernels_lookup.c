// SPDX-License-Identifier: MIT
/*
 * Kernels that look rows up and combine them, in each variant, against rules that are written
 * plainly; and quantization by hand.
 */
#include <check.h>
#include <float.h>
#include <math.h>

#include "engine/kernels/kernels.h"
#include "suite.h"
#include "test_kernels.h"
#include "variants.h"

#define ROWS 50u
#define SAMPLES 24u
#define GUARD 0x7fc0dead

struct batch {
	u64 bag[SAMPLES + 1];
	u64 *rows;
	u32 *narrow; /* one of the two */
	float *weights;
	float *scales;
};

static u64 *rows_random(u64 count)
{
	u64 *rows = malloc(count * sizeof(*rows));

	for (u64 k = 0; k < count; k++)
		rows[k] = random_below(10) ? random_below(ROWS) : KERNEL_ROW_ZERO;
	return rows;
}

static u32 *narrow_random(u64 count)
{
	u32 *rows = malloc(count * sizeof(*rows));

	for (u64 k = 0; k < count; k++)
		rows[k] = (u32)random_below(ROWS);
	return rows;
}

/* Every third sample or so is empty. */
static struct batch batch_random(bool narrow)
{
	struct batch b = {.bag = {0}};

	for (u32 s = 0; s < SAMPLES; s++)
		b.bag[s + 1] = b.bag[s] + random_below(3) * random_below(12);
	if (narrow)
		b.narrow = narrow_random(b.bag[SAMPLES]);
	else
		b.rows = rows_random(b.bag[SAMPLES]);
	b.weights = random_values(b.bag[SAMPLES]);
	b.scales = random_values(SAMPLES);
	return b;
}

static void batch_free(struct batch *b)
{
	free(b->rows);
	free(b->narrow);
	free(b->weights);
	free(b->scales);
}

static float quantized(const struct kernel_quantization *q, float x)
{
	float c = x < q->lower ? q->lower : x > q->upper ? q->upper : x;

	return q->lower + q->step * floorf((c - q->lower) / q->step + 0.5f);
}

static float expected(const struct kernel_bag_work *w, u64 sample, u32 column)
{
	float acc = 0.0f;

	for (u64 k = w->bag[sample]; k < w->bag[sample + 1]; k++) {
		float weight = w->weights ? w->weights[k] : 1.0f;
		u64 row = w->narrow ? w->narrow[k] : w->rows[k];
		float x = row == KERNEL_ROW_ZERO ? 0.0f : w->table[row * w->stride + column];

		if (w->quantization && row != KERNEL_ROW_ZERO)
			x = quantized(w->quantization, x);
		acc = fmaf(weight, x, acc);
	}
	return w->scales ? acc * w->scales[sample] : acc;
}

static void expect_samples(const struct kernel_bag_work *w, u64 first, u64 last)
{
	for (u64 s = 0; s < SAMPLES; s++) {
		for (u32 c = 0; c < w->out_stride; c++) {
			float got = w->out[s * w->out_stride + c];

			if (s < first || s >= last || c >= w->dim)
				ck_assert_uint_eq(bits_of(got), GUARD);
			else
				ck_assert_msg(same_float(got, expected(w, s, c)),
					      "dim %u sample %u column %u: %a instead of %a",
					      w->dim, (u32)s, c, got, expected(w, s, c));
		}
	}
}

static void check_dim(const struct kernel_ops *ops, u32 dim, u64 stride, u64 out_stride)
{
	float *table = random_values(ROWS * stride), *zero = calloc(dim, sizeof(*zero));
	float *out = malloc(SAMPLES * out_stride * sizeof(*out));
	struct kernel_quantization levels;

	kernel_quantization_set(&levels, 2 + (u32)random_below(40), bits_of(-0.75f), bits_of(0.5f));

	for (u32 form = 0; form < 16; form++) {
		struct batch b = batch_random(form & 8);
		struct kernel_bag_work w = {
			.table = table,
			.stride = stride,
			.dim = dim,
			.prefetch = 8 * (u32)random_below(2),
			.fetch = random_below(4),
			.rows = b.rows,
			.narrow = b.narrow,
			.rows_count = b.bag[SAMPLES],
			.zero_row = zero,
			.weights = form & 1 ? b.weights : NULL,
			.bag = b.bag,
			.scales = form & 2 ? b.scales : NULL,
			.out = out,
			.out_stride = out_stride,
			.quantization = form & 4 ? &levels : NULL,
		};
		u64 first = random_below(SAMPLES / 2);
		u64 last = first + random_below(SAMPLES / 2);

		for (u64 i = 0; i < SAMPLES * out_stride; i++)
			out[i] = float_of(GUARD);
		ops->lookup(&w, first, last);
		expect_samples(&w, first, last);
		batch_free(&b);
	}
	free(table);
	free(zero);
	free(out);
}

START_TEST(test_lookup_equals_the_rule)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 dim = 1; dim <= 130; dim++) {
		check_dim(ops, dim, dim + random_below(9), dim + random_below(5));
		check_dim(ops, dim, dim, dim);
	}
	for (u32 dim = 16; dim <= 128; dim *= 2) {
		check_dim(ops, dim, dim + 1, dim);
		check_dim(ops, dim, dim, dim + 1);
	}
}
END_TEST

/* Lines that are written past the caches hold what others do. */
START_TEST(test_streams_equal_the_rule)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 dim = 16; dim <= 272; dim += 16) {
		float *table = random_values(ROWS * dim), *zero = calloc(dim, sizeof(*zero));
		float *out = aligned_alloc(64, SAMPLES * dim * sizeof(*out));

		for (u32 form = 0; form < 8; form++) {
			struct batch b = batch_random(form & 4);
			struct kernel_bag_work w = {
				.table = table,
				.stride = dim,
				.dim = dim,
				.prefetch = 8,
				.rows = b.rows,
				.narrow = b.narrow,
				.rows_count = b.bag[SAMPLES],
				.zero_row = zero,
				.weights = form & 1 ? b.weights : NULL,
				.bag = b.bag,
				.scales = form & 2 ? b.scales : NULL,
				.out = out,
				.out_stride = dim,
				.stream = true,
			};

			for (u64 i = 0; i < SAMPLES * dim; i++)
				out[i] = float_of(GUARD);
			ops->lookup(&w, 1, SAMPLES - 1);
			expect_samples(&w, 1, SAMPLES - 1);
			batch_free(&b);
		}
		free(table);
		free(zero);
		free(out);
	}
}
END_TEST

/* Levels, middles between them and what lies beyond, from -1 to 2.5 in five levels. */
START_TEST(test_quantization_by_hand)
{
	static const float given[] = {-1.0f, -0.5625f, -0.5703125f, 0.75f,   2.5f,    2.0625f,
				      -9.0f, INFINITY, -INFINITY,   0.3125f, 1.1875f, -0.0f};
	static const float gives[] = {-1.0f, -0.125f, -1.0f, 0.75f, 2.5f,   2.5f,
				      -1.0f, 2.5f,    -1.0f, 0.75f, 1.625f, -0.125f};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	const u64 rows[] = {0}, bag[] = {0, 1};
	struct kernel_quantization levels;
	float out[12];
	struct kernel_bag_work w = {.table = given,
				    .stride = 12,
				    .dim = 12,
				    .rows = rows,
				    .rows_count = 1,
				    .quantization = &levels,
				    .bag = bag,
				    .out = out,
				    .out_stride = 12};

	kernel_quantization_set(&levels, 5, bits_of(-1.0f), bits_of(2.5f));
	ck_assert(levels.lower == -1.0f && levels.upper == 2.5f && levels.step == 0.875f);
	ops->lookup(&w, 0, 1);
	for (u32 i = 0; i < 12; i++)
		ck_assert_msg(out[i] == gives[i], "%g became %g, not %g", (double)given[i],
			      (double)out[i], (double)gives[i]);
}
END_TEST

/* Levels so many that the highest floats have no fraction and half of one rounds up; NaN. */
START_TEST(test_quantization_of_many_levels)
{
	static const float given[] = {0.0f, 16777215.0f, 8388607.0f, 3.5f, NAN};
	static const float gives[] = {0.0f, 16777216.0f, 8388607.0f, 4.0f, NAN};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	const u64 rows[] = {0}, bag[] = {0, 1};
	struct kernel_quantization levels;
	float out[5];
	struct kernel_bag_work w = {.table = given,
				    .stride = 5,
				    .dim = 5,
				    .rows = rows,
				    .rows_count = 1,
				    .quantization = &levels,
				    .bag = bag,
				    .out = out,
				    .out_stride = 5};

	kernel_quantization_set(&levels, 16777216, 0, bits_of(16777215.0f));
	ck_assert(levels.step == 1.0f);
	ops->lookup(&w, 0, 1);
	for (u32 i = 0; i < 5; i++)
		ck_assert_msg(same_float(out[i], gives[i]), "%g became %g, not %g",
			      (double)given[i], (double)out[i], (double)gives[i]);
}
END_TEST

struct range {
	float lower, upper;
	u32 levels;
	float given[5], gives[5];
};

/* Ranges that are no f32, and steps that round to 0: levels are finite, and within the range. */
static const struct range ranges[] = {
	{-FLT_MAX,
	 FLT_MAX,
	 2,
	 {-FLT_MAX, -1, 1, FLT_MAX, NAN},
	 {-FLT_MAX, FLT_MAX, FLT_MAX, FLT_MAX, NAN}},
	{-FLT_MAX,
	 FLT_MAX,
	 3,
	 {-FLT_MAX, -0x1p125f, 1, 0x1.8p127f, INFINITY},
	 {-FLT_MAX, 0, 0, FLT_MAX, FLT_MAX}},
	{-0x1p127f,
	 0x1p127f,
	 5,
	 {-FLT_MAX, -0x1.2p126f, 0x1p100f, 0x1p126f, -INFINITY},
	 {-0x1p127f, -0x1p126f, 0, 0x1p126f, -0x1p127f}},
	{0, 0x1p-149f, 1000, {0, 0x1p-149f, 1, -1, NAN}, {0, 0x1p-149f, 0x1p-149f, 0, NAN}},
	{-0x1p-148f,
	 0x1p-148f,
	 1u << 31,
	 {0x1p-149f, 3, -3, 0, -0x1p-149f},
	 {0x1p-149f, 0x1p-148f, -0x1p-148f, 0, -0x1p-149f}},
};

START_TEST(test_quantization_beyond_f32)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	const u64 rows[] = {0}, bag[] = {0, 1};

	for (size_t r = 0; r < sizeof(ranges) / sizeof(*ranges); r++) {
		struct kernel_quantization levels;
		float row[19], out[19];
		struct kernel_bag_work w = {.table = row,
					    .stride = 19,
					    .dim = 19,
					    .rows = rows,
					    .rows_count = 1,
					    .quantization = &levels,
					    .bag = bag,
					    .out = out,
					    .out_stride = 19};

		for (u32 i = 0; i < 19; i++)
			row[i] = ranges[r].given[i % 5];
		kernel_quantization_set(&levels, ranges[r].levels, bits_of(ranges[r].lower),
					bits_of(ranges[r].upper));
		ops->lookup(&w, 0, 1);
		for (u32 i = 0; i < 19; i++)
			ck_assert_msg(same_float(out[i], ranges[r].gives[i % 5]),
				      "range %zu: %g became %g, not %g", r, (double)row[i],
				      (double)out[i], (double)ranges[r].gives[i % 5]);
	}
}
END_TEST

static float expected_scale(u32 combiner, const float *weights, u64 n)
{
	double sum = 0.0;

	if (combiner == KERNEL_SUM)
		return 1.0f;
	for (u64 k = 0; k < n; k++) {
		double w = weights ? weights[k] : 1.0;

		sum += combiner == KERNEL_MEAN ? w : w * w;
	}
	if (combiner == KERNEL_SQRTN)
		sum = sqrt(sum);
	return sum == 0.0 ? 0.0f : (float)(1.0 / sum);
}

static void check_scales(const struct kernel_ops *ops, u32 combiner, bool weighted)
{
	struct batch b = batch_random(false);
	float scales[SAMPLES], *coef = malloc((b.bag[SAMPLES] + 1) * sizeof(*coef));
	struct kernel_scale_work w = {.combiner = combiner,
				      .bag = b.bag,
				      .scales = scales,
				      .weights = weighted ? b.weights : NULL,
				      .coef = coef};

	ops->scales(&w, 0, SAMPLES);
	for (u32 s = 0; s < SAMPLES; s++) {
		u64 first = b.bag[s], n = b.bag[s + 1] - first;
		float scale = expected_scale(combiner, weighted ? b.weights + first : NULL, n);

		ck_assert(same_float(scales[s], scale));
		for (u64 k = first; k < first + n; k++)
			ck_assert(same_float(coef[k], scale * (weighted ? b.weights[k] : 1.0f)));
	}
	free(coef);
	batch_free(&b);
}

START_TEST(test_scales_equal_the_rule)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 round = 0; round < 200; round++)
		check_scales(ops, round % 3, round & 1);
}
END_TEST

/* mean of weights 2 and -2, sqrtn of zeros, no ids; 1/3 rounds once, from f64 */
START_TEST(test_zero_denominator_gives_scale_zero)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));
	const float weights[] = {2.0f, -2.0f, 0.0f, -0.0f, 1.0f, 2.0f};
	const u64 bag[] = {0, 2, 4, 4, 6};
	struct kernel_scale_work w = {.combiner = KERNEL_MEAN, .weights = weights, .bag = bag};
	float scales[4] = {9.0f, 9.0f, 9.0f, 9.0f};

	w.scales = scales;
	ops->scales(&w, 0, 4);
	ck_assert(scales[0] == 0.0f && scales[1] == 0.0f && scales[2] == 0.0f);
	ck_assert(scales[3] == (float)(1.0 / 3.0));
	w.combiner = KERNEL_SQRTN;
	ops->scales(&w, 0, 4);
	ck_assert(scales[0] == (float)(1.0 / sqrt(8.0)));
	ck_assert(scales[1] == 0.0f && scales[2] == 0.0f);
}
END_TEST

START_TEST(test_select_by_name)
{
	ck_assert_str_eq(kernel_select("portable")->name, "portable");
	ck_assert_ptr_nonnull(kernel_select(NULL));
	ck_assert_ptr_eq(kernel_select(kernel_select(NULL)->name), kernel_select(NULL));
	ck_assert_ptr_null(kernel_select("portabl"));
	ck_assert_ptr_null(kernel_select("portable2"));
	ck_assert_ptr_null(kernel_select(""));
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 120);
	add_variant_tests(tcase, test_lookup_equals_the_rule, 1);
	add_variant_tests(tcase, test_streams_equal_the_rule, 1);
	add_variant_tests(tcase, test_quantization_by_hand, 1);
	add_variant_tests(tcase, test_quantization_of_many_levels, 1);
	add_variant_tests(tcase, test_quantization_beyond_f32, 1);
	add_variant_tests(tcase, test_scales_equal_the_rule, 1);
	add_variant_tests(tcase, test_zero_denominator_gives_scale_zero, 1);
	tcase_add_test(tcase, test_select_by_name);
}

int main(void)
{
	return suite_main("kernels_lookup", add);
}
