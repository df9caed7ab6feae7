/* SPDX-License-Identifier: MIT */
/* Part of body.h: the gradient sum of a row, in its fixed order. */

#include "scratch.h"
#include "segments.h"

static const float coef_one = 1.0f;

/* Where the gradient of an occurrence is, and its coefficient. */
INLINE const float *occurrence_gradient(const struct kernel_segment *s, u64 occurrence,
					const float **coef)
{
	u64 at = occurrence - s->first;

	*coef = s->coef ? &s->coef[at] : &coef_one;
	return s->gradients + (s->grad_row ? s->grad_row[at] : at) * s->stride;
}

/* Sorted by row, occurrences lie scattered: finding a gradient misses the cache, too. */
INLINE void prefetch_occurrence(const struct kernel_segment *s, u64 occurrence)
{
	u64 at = occurrence - s->first;

	if (s->grad_row)
		__builtin_prefetch(&s->grad_row[at], 0, 2);
	if (s->coef)
		__builtin_prefetch(&s->coef[at], 0, 2);
}

/* Occurrences of a run that are looked for ahead of their turn. */
#define RUN_AHEAD 32u

/* Addresses once per run, not once per block of columns. Return: whether coefs count. */
INLINE bool run_resolve(const struct kernel_update *u, const u32 *occ, u64 n,
			struct kernel_scratch *scratch)
{
	const struct kernel_segment *s = kernel_find_segment(u->segments, u->segment_count, occ[0]);
	bool weighted = false;

	for (u64 i = 0; i < n; i++) {
		const float *coef;

		while (occ[i] >= s->end)
			s++;
		if (n - i > RUN_AHEAD && occ[i + RUN_AHEAD] < s->end)
			prefetch_occurrence(s, occ[i + RUN_AHEAD]);
		scratch->gradient[i] = occurrence_gradient(s, occ[i], &coef);
		scratch->coef[i] = *coef;
		weighted |= s->coef != NULL;
	}
	return weighted;
}

/* count vectors of floats floats: one may be a part. */
INLINE void run_block(const struct kernel_scratch *scratch, u64 n, float *sum, u64 column,
		      const u32 count, const u64 floats, const bool weighted)
{
	vec acc[8] = { { 0 } };

	for (u64 k = 0; k < n; k++) {
		const float *g = scratch->gradient[k] + column;

		UNROLL
		for (u32 i = 0; i < count; i++) {
			vec x = vec_get(g + i * VEC, floats);

			acc[i] = weighted ? vec_fma(vec_all(scratch->coef[k]), x, acc[i]) :
					    acc[i] + x;
		}
	}
	UNROLL
	for (u32 i = 0; i < count; i++)
		vec_put(sum + column + i * VEC, acc[i], floats);
}

INLINE float run_column(const struct kernel_scratch *scratch, u64 n, u64 column)
{
	float acc = 0.0f;

	for (u64 k = 0; k < n; k++)
		acc = one_fma(scratch->coef[k], scratch->gradient[k][column], acc);
	return acc;
}

INLINE void run_sum(const struct kernel_scratch *scratch, u64 n, float *sum, u32 dim,
		    const bool weighted)
{
	u64 c = 0;

	for (; dim - c >= 8 * VEC; c += 8 * VEC)
		run_block(scratch, n, sum, c, 8, VEC, weighted);
	if (dim - c >= 4 * VEC) {
		run_block(scratch, n, sum, c, 4, VEC, weighted);
		c += 4 * VEC;
	}
	for (; dim - c >= VEC; c += VEC)
		run_block(scratch, n, sum, c, 1, VEC, weighted);
	if (VEC_PARTS && c < dim)
		return run_block(scratch, n, sum, c, 1, dim - c, weighted);
	for (; c < dim; c++)
		sum[c] = run_column(scratch, n, c);
}

static void run_gradient(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
			 void *memory)
{
	struct kernel_scratch *scratch = memory;

	if (run_resolve(u, occ, n, scratch))
		run_sum(scratch, n, sum, u->dim, true);
	else
		run_sum(scratch, n, sum, u->dim, false);
}

static void add_row(float *dst, const float *src, u32 dim)
{
	u64 c = 0;

	for (; dim - c >= VEC; c += VEC)
		vec_store(dst + c, vec_load(dst + c) + vec_load(src + c));
	if (VEC_PARTS && c < dim)
		return vec_put(dst + c, vec_get(dst + c, dim - c) + vec_get(src + c, dim - c),
			       dim - c);
	for (; c < dim; c++)
		dst[c] += src[c];
}

static void row_gradient(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
			 void *memory)
{
	float *total = kernel_scratch_total(memory);
	float *run = kernel_scratch_run(memory, u->dim);
	float *target = sum;
	u32 previous = 0;

	for (u64 done = 0, length; done < n; done += length) {
		u32 replica;

		length = kernel_run_length(u->segments, u->segment_count, occ + done, n - done,
					   &replica);
		if (done && replica == previous) {
			run_gradient(u, run, occ + done, length, memory);
			add_row(target, run, u->dim);
			continue;
		}
		/* The first replica's total is the sum's start; the next ones are added. */
		if (target == total)
			add_row(sum, total, u->dim);
		target = done ? total : sum;
		run_gradient(u, target, occ + done, length, memory);
		previous = replica;
	}
	if (target == total)
		add_row(sum, total, u->dim);
}
