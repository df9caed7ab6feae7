// SPDX-License-Identifier: MIT
/*
 * The combiner max in each variant: lookups of the largest numbers against a rule that is written
 * plainly, and sums of gradients of which each occurrence takes what it holds against sums of what
 * was taken apart beforehand.
 */
#include <check.h>
#include <math.h>

#include "engine/kernels/optimizers.h"
#include "suite.h"
#include "test_kernels.h"
#include "variants.h"

#define ROWS 40u
#define SAMPLES 20u
#define GUARD 0x7fc0dead
#define HELD_GUARD 0xdeadbeefu

struct batch {
	u64 bag[SAMPLES + 1];
	u64 rows[SAMPLES * 16];
	u32 narrow[SAMPLES * 16];
};

/* Few different numbers, so that many are equal; both zeros, infinities and NaN among them. */
static float *ties_random(u64 count)
{
	static const u32 special[] = {0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001};
	float *values = malloc(count * sizeof(*values));

	for (u64 i = 0; i < count; i++) {
		values[i] = ((float)random_below(9) - 6) / 4;
		if (!random_below(24))
			values[i] = float_of(special[random_below(5)]);
	}
	return values;
}

static void batch_random(struct batch *b, bool narrow)
{
	b->bag[0] = 0;
	for (u32 s = 0; s < SAMPLES; s++) {
		b->bag[s + 1] = b->bag[s] + random_below(3) * random_below(8);
		for (u64 k = b->bag[s]; k < b->bag[s + 1]; k++) {
			b->narrow[k] = (u32)random_below(ROWS);
			b->rows[k] = narrow || random_below(8) ? b->narrow[k] : KERNEL_ROW_ZERO;
		}
	}
}

static float number_of(const struct kernel_bag_work *w, const u64 *rows, u64 k, u32 c)
{
	const struct kernel_quantization *q = w->quantization;
	float x;

	if (rows[k] == KERNEL_ROW_ZERO)
		return 0;
	x = w->table[rows[k] * w->stride + c];
	if (!q || x != x)
		return x;
	x = x < q->lower ? q->lower : x > q->upper ? q->upper : x;
	return q->lower + q->step * floorf((x - q->lower) / q->step + 0.5f);
}

/* Return: the first occurrence that holds the largest number, NaN above all; of a bag that has one. */
static u64 holder_of(const struct kernel_bag_work *w, const u64 *rows, u64 sample, u32 c)
{
	u64 best = w->bag[sample];

	for (u64 k = best; k < w->bag[sample + 1]; k++) {
		float x = number_of(w, rows, k, c);

		if (x != x)
			return k;
		if (x > number_of(w, rows, best, c))
			best = k;
	}
	return best;
}

static void expect_sample(const struct kernel_bag_work *w, const u64 *rows, u64 s, bool done)
{
	const bool empty = w->bag[s] == w->bag[s + 1];

	for (u32 c = 0; c < w->out_stride; c++) {
		float got = w->out[s * w->out_stride + c];

		if (!done || c >= w->dim)
			ck_assert_uint_eq(bits_of(got), GUARD);
		else if (empty)
			ck_assert_uint_eq(bits_of(got), 0);
		else
			ck_assert_msg(
				same_float(got,
					   number_of(w, rows, holder_of(w, rows, s, c), c) + 0.0f),
				"dim %u sample %u column %u: %a", w->dim, (u32)s, c, got);
	}
	for (u32 c = 0; w->holders && c < w->dim && !(done && empty); c++)
		ck_assert_uint_eq(w->holders[s * w->dim + c],
				  done ? holder_of(w, rows, s, c) : HELD_GUARD);
}

/* In two parts of each bag, too: the second goes on from the first. */
static void look_in_parts(const struct kernel_ops *ops, struct kernel_bag_work w, u64 s)
{
	const u64 middle = w.bag[s] + random_below(w.bag[s + 1] - w.bag[s]) + 1;
	const u64 first[] = {w.bag[s], middle}, second[] = {middle, w.bag[s + 1]};

	w.out += s * w.out_stride;
	w.holders = w.holders ? w.holders + s * w.dim : NULL;
	w.bag = first;
	ops->lookup_max(&w, 0, 1);
	w.bag = second;
	w.resume = true;
	ops->lookup_max(&w, 0, 1);
}

static void check_work(const struct kernel_ops *ops, struct kernel_bag_work *w, const u64 *rows)
{
	const u64 first = random_below(SAMPLES / 2), last = first + random_below(SAMPLES / 2);
	bool finite = true;

	for (u32 parts = 0; parts < 2; parts++) {
		for (u64 i = 0; i < SAMPLES * w->out_stride; i++)
			w->out[i] = float_of(GUARD);
		for (u64 i = 0; w->holders && i < SAMPLES * w->dim; i++)
			w->holders[i] = HELD_GUARD;
		for (u64 s = first; parts && s < last; s++) {
			if (w->bag[s] == w->bag[s + 1])
				ops->lookup_max(w, s, s + 1);
			else
				look_in_parts(ops, *w, s);
		}
		if (!parts) {
			bool unfinite = ops->lookup_max(w, first, last);

			for (u64 s = first; s < last; s++)
				for (u32 c = 0; c < w->dim; c++)
					finite &= isfinite(w->out[s * w->out_stride + c]);
			ck_assert_int_eq(unfinite, !finite);
		}
		for (u64 s = 0; s < SAMPLES; s++)
			expect_sample(w, rows, s, s >= first && s < last);
	}
}

static void check_dim(const struct kernel_ops *ops, u32 dim)
{
	const u64 stride = dim + random_below(5), out_stride = dim + random_below(5);
	float *table = ties_random(ROWS * stride), *zero = calloc(dim, sizeof(*zero));
	float *out = malloc(SAMPLES * out_stride * sizeof(*out));
	u32 *holders = malloc(SAMPLES * dim * sizeof(*holders));
	struct kernel_quantization levels;

	kernel_quantization_set(&levels, 4, bits_of(-1.0f), bits_of(0.5f));
	for (u32 form = 0; form < 8; form++) {
		struct batch b;
		struct kernel_bag_work w = {.table = table,
					    .stride = stride,
					    .dim = dim,
					    .prefetch = 8 * (u32)random_below(2),
					    .rows = form & 1 ? NULL : b.rows,
					    .narrow = form & 1 ? b.narrow : NULL,
					    .zero_row = zero,
					    .quantization = form & 2 ? &levels : NULL,
					    .bag = b.bag,
					    .out = out,
					    .out_stride = out_stride,
					    .holders = form & 4 ? holders : NULL};

		batch_random(&b, form & 1);
		w.rows_count = b.bag[SAMPLES];
		check_work(ops, &w, b.rows);
	}
	free(table);
	free(zero);
	free(out);
	free(holders);
}

START_TEST(test_lookup_equals_the_rule)
{
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 dim = 1; dim <= 140; dim++)
		check_dim(ops, dim);
}
END_TEST

#define OUTPUTS 30u
#define MOST 700u

/* Occurrences of two segments, the second of which holds all that it is given. */
struct gradients {
	u32 dim, count;
	float *given, *taken; /* [OUTPUTS][dim], [count][dim] */
	u32 *holders, output[MOST], occ[MOST];
	struct kernel_segment held[2], apart;
};

static struct gradients *gradients_new(u32 dim, u32 count)
{
	struct gradients *g = malloc(sizeof(*g));
	const u32 first = count * 2 / 3;

	*g = (struct gradients){.dim = dim, .count = count};
	g->given = random_values(OUTPUTS * dim);
	g->taken = calloc(count * dim, sizeof(*g->taken));
	g->holders = malloc(OUTPUTS * dim * sizeof(*g->holders));
	for (u32 i = 0; i < OUTPUTS * dim; i++)
		g->holders[i] = (u32)random_below(first);
	for (u32 k = 0; k < count; k++) {
		const float *from;

		g->occ[k] = k;
		g->output[k] = (u32)random_below(OUTPUTS);
		from = g->given + g->output[k] * dim;
		for (u32 c = 0; c < dim; c++) {
			/* Some of the first segment hold much. */
			if (k < first && k % 4 == 0 && random_below(2))
				g->holders[g->output[k] * dim + c] = k;
			g->taken[k * dim + c] = k < first ? 0 : from[c];
		}
	}
	for (u32 k = 0; k < first; k++)
		for (u32 c = 0; c < dim; c++)
			if (g->holders[g->output[k] * dim + c] == k)
				g->taken[k * dim + c] = g->given[g->output[k] * dim + c];
	g->held[0] = (struct kernel_segment){.end = first,
					     .gradients = g->given,
					     .stride = dim,
					     .grad_row = g->output,
					     .holders = g->holders};
	g->held[1] = (struct kernel_segment){.first = first,
					     .end = count,
					     .gradients = g->given,
					     .stride = dim,
					     .grad_row = g->output + first};
	g->apart = (struct kernel_segment){.end = count, .gradients = g->taken, .stride = dim};
	return g;
}

static void gradients_free(struct gradients *g)
{
	free(g->given);
	free(g->taken);
	free(g->holders);
	free(g);
}

static void update(const struct kernel_ops *ops, const struct gradients *g, float *table,
		   float *slot, u32 flags, bool apart)
{
	void *scratch = aligned_alloc(64, (kernel_scratch_bytes(g->dim) + 63) / 64 * 64);
	const struct kernel_group groups[] = {{0, 0, 1},
					      {2, 1, g->count / 4},
					      {3, 1 + g->count / 4, g->count - 1 - g->count / 4}};
	struct kernel_update u = {.optimizer = KERNEL_ADAGRAD,
				  .flags = flags | (apart ? 0 : KERNEL_HELD),
				  .dim = g->dim,
				  .stride = g->dim,
				  .table = table,
				  .slots = {slot},
				  .segments = apart ? &g->apart : g->held,
				  .segment_count = apart ? 1 : 2,
				  .lr = 0.25f,
				  .step = 1};

	kernel_prepare(&u);
	ops->update_rows(&u, groups, 3, 0, g->occ, scratch);
	free(scratch);
}

START_TEST(test_an_occurrence_takes_what_it_holds)
{
	static const u32 flags[] = {0, KERNEL_EACH_OCCURRENCE, KERNEL_BY_FREQUENCY};
	const struct kernel_ops *ops = kernel_select(kernel_variant(_i));

	for (u32 round = 0; round < 3 * 90; round++) {
		u32 dim = 1 + round / 3, bytes = 4 * dim * (u32)sizeof(float);
		struct gradients *g = gradients_new(dim, dim % 9 ? 40 : MOST);
		float *a = random_values(4 * dim), *b = malloc(bytes);
		float *s = malloc(bytes), *t = malloc(bytes);

		for (u32 i = 0; i < 4 * dim; i++)
			s[i] = t[i] = 0.5f;
		memcpy(b, a, bytes);
		update(ops, g, a, s, flags[round % 3], false);
		update(ops, g, b, t, flags[round % 3], true);
		for (u32 i = 0; i < 4 * dim; i++)
			ck_assert_msg(same_float(a[i], b[i]) && same_float(s[i], t[i]),
				      "dim %u flags %#x number %u: %a instead of %a", dim,
				      flags[round % 3], i, a[i], b[i]);
		free(a);
		free(b);
		free(s);
		free(t);
		gradients_free(g);
	}
}
END_TEST

static void add(TCase *tcase)
{
	random_start();
	tcase_set_timeout(tcase, 120);
	add_variant_tests(tcase, test_lookup_equals_the_rule, 1);
	add_variant_tests(tcase, test_an_occurrence_takes_what_it_holds, 1);
}

int main(void)
{
	return suite_main("kernels_max", add);
}
