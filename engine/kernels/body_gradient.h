/* SPDX-License-Identifier: MIT */
/* The gradient sum of a row, in its fixed order. */
#ifndef ENGINE_KERNELS_BODY_GRADIENT_H
#define ENGINE_KERNELS_BODY_GRADIENT_H

#include "body.h"
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

/**
 * struct run - occurrences of a row that are summed one after another
 * @list: where their gradients are; NULL: all are of one segment, and need no list
 * @only: that segment
 * @occ: [end] numbers of occurrences
 * @n: how many are summed
 * @end: those behind the @n may be fetched ahead
 * @far: how many ahead of each a gradient is fetched; 0: none is
 */
struct run {
	const struct kernel_scratch *list;
	const struct kernel_segment *only;
	const u32 *occ;
	u64 n, end, far;
};

INLINE const float *run_at(const struct run *r, u64 k, const float **coef)
{
	if (!r->list)
		return occurrence_gradient(r->only, r->occ[k], coef);
	*coef = &r->list->coef[k];
	return r->list->gradient[k];
}

/* Columns of the gradient that is summed @far occurrences after the @k-th. */
INLINE void run_ahead(const struct run *r, u64 k, u64 column, const u32 floats)
{
	const float *coef;

	if (!r->list && r->far && k + r->far < r->end)
		prefetch_floats(run_at(r, k + r->far, &coef) + column, floats);
}

/* count vectors of floats floats: one may be a part. */
INLINE void run_block(const struct run *r, float *sum, u64 column, const u32 count,
		      const u64 floats, const bool weighted)
{
	vec acc[8] = { { 0 } };

	for (u64 k = 0; k < r->n; k++) {
		const float *coef, *g = run_at(r, k, &coef) + column;

		run_ahead(r, k, column, count * VEC);
		UNROLL
		for (u32 i = 0; i < count; i++) {
			vec x = vec_get(g + i * VEC, floats);

			acc[i] = weighted ? vec_fma(vec_all(*coef), x, acc[i]) : acc[i] + x;
		}
	}
	UNROLL
	for (u32 i = 0; i < count; i++)
		vec_put(sum + column + i * VEC, acc[i], floats);
}

INLINE float run_column(const struct run *r, u64 column)
{
	float acc = 0.0f;

	for (u64 k = 0; k < r->n; k++) {
		const float *coef, *g = run_at(r, k, &coef);

		acc = one_fma(*coef, g[column], acc);
	}
	return acc;
}

INLINE void run_columns(const struct run *r, float *sum, u32 dim, const bool weighted)
{
	u64 c = 0;

	for (; dim - c >= 8 * VEC; c += 8 * VEC)
		run_block(r, sum, c, 8, VEC, weighted);
	if (dim - c >= 4 * VEC) {
		run_block(r, sum, c, 4, VEC, weighted);
		c += 4 * VEC;
	}
	if (dim - c >= 2 * VEC) {
		run_block(r, sum, c, 2, VEC, weighted);
		c += 2 * VEC;
	}
	if (dim - c >= VEC) {
		run_block(r, sum, c, 1, VEC, weighted);
		c += VEC;
	}
	if (VEC_PARTS && c < dim)
		return run_block(r, sum, c, 1, dim - c, weighted);
	for (; c < dim; c++)
		sum[c] = run_column(r, c);
}

INLINE void run_sum(const struct run *r, float *sum, u32 dim, const bool weighted)
{
	if (weighted)
		run_columns(r, sum, dim, true);
	else
		run_columns(r, sum, dim, false);
}

/* count vectors of what occurrences take of gradients, where each may take a part alone. */
INLINE void held_block(const struct kernel_update *u, const u32 *occ, u64 n, float *sum, u64 column,
		       const u32 count, const u64 floats)
{
	const struct kernel_segment *s = kernel_find_segment(u->segments, u->segment_count, occ[0]);
	vec acc[4] = { { 0 } };

	for (u64 k = 0; k < n; k++) {
		const float *coef, *g;
		u64 at, row;

		while (occ[k] >= s->end)
			s++;
		at = occ[k] - s->first;
		row = s->grad_row ? s->grad_row[at] : at;
		g = occurrence_gradient(s, occ[k], &coef) + column;
		UNROLL
		for (u32 i = 0; i < count; i++) {
			vec x = vec_get(g + i * VEC, floats);

			if (s->holders) {
				const u32 *from = s->holders + row * u->dim + column + i * VEC;
				vec_mask holder = (vec_mask)vec_get((const float *)from, floats);

				x = (vec)((vec_mask)x & (holder == (s32)at));
			}
			acc[i] = acc[i] + x;
		}
	}
	UNROLL
	for (u32 i = 0; i < count; i++)
		vec_put(sum + column + i * VEC, acc[i], floats);
}

INLINE float held_column(const struct kernel_update *u, const u32 *occ, u64 n, u64 column)
{
	const struct kernel_segment *s = kernel_find_segment(u->segments, u->segment_count, occ[0]);
	float acc = 0.0f;

	for (u64 k = 0; k < n; k++) {
		const float *coef;
		u64 at, row;

		while (occ[k] >= s->end)
			s++;
		at = occ[k] - s->first;
		row = s->grad_row ? s->grad_row[at] : at;
		if (!s->holders || s->holders[row * u->dim + column] == at)
			acc += occurrence_gradient(s, occ[k], &coef)[column];
	}
	return acc;
}

static void held_sum(const struct kernel_update *u, float *sum, const u32 *occ, u64 n)
{
	u64 c = 0;

	for (; u->dim - c >= 4 * VEC; c += 4 * VEC)
		held_block(u, occ, n, sum, c, 4, VEC);
	for (; u->dim - c >= VEC; c += VEC)
		held_block(u, occ, n, sum, c, 1, VEC);
	if (VEC_PARTS && c < u->dim)
		return held_block(u, occ, n, sum, c, 1, u->dim - c);
	for (; c < u->dim; c++)
		sum[c] = held_column(u, occ, n, c);
}

/* Whether all occurrences are of one segment, weigh 1 and are numbered by their gradients. */
INLINE bool update_is_plain(const struct kernel_update *u)
{
	return u->segment_count == 1 && !u->segments->coef && !u->segments->grad_row;
}

/* The one segment, with what compilers have to know for its occurrences to be found at once. */
INLINE struct kernel_segment plain_segment(const struct kernel_update *u)
{
	return (struct kernel_segment){ .first = u->segments->first,
					.gradients = u->segments->gradients,
					.stride = u->segments->stride,
					.far = u->segments->far };
}

/* A run that is one sum already keeps its bits. Return: whether it is. */
INLINE bool run_is_sum(const struct kernel_update *u, float *sum, u32 occ)
{
	const struct kernel_segment *s = kernel_find_segment(u->segments, u->segment_count, occ);
	const float *coef;

	if (s->sums)
		__builtin_memcpy(sum, occurrence_gradient(s, occ, &coef), u->dim * sizeof(*sum));
	return s->sums;
}

void KERNEL(run_gradient)(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
			  void *memory)
{
	struct kernel_scratch *scratch = memory;

	if (u->flags & KERNEL_SUMS && run_is_sum(u, sum, *occ))
		return;
	if (u->flags & KERNEL_HELD)
		return held_sum(u, sum, occ, n);
	if (update_is_plain(u)) {
		const struct kernel_segment only = plain_segment(u);

		run_columns(&(struct run){ .only = &only,
					   .occ = occ,
					   .n = n,
					   .end = n,
					   .far = u->segments->far ? RUN_AHEAD : 0 },
			    sum, u->dim, false);
		return;
	}
	run_sum(&(struct run){ .list = scratch, .n = n }, sum, u->dim,
		run_resolve(u, occ, n, scratch));
}

void KERNEL(add_row)(float *dst, const float *src, u32 dim)
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

void KERNEL(row_gradient)(const struct kernel_update *u, float *sum, const u32 *occ, u64 n,
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
			KERNEL(run_gradient)(u, run, occ + done, length, memory);
			KERNEL(add_row)(target, run, u->dim);
			continue;
		}
		/* The first replica's total is the sum's start; the next ones are added. */
		if (target == total)
			KERNEL(add_row)(sum, total, u->dim);
		target = done ? total : sum;
		KERNEL(run_gradient)(u, target, occ + done, length, memory);
		previous = replica;
	}
	if (target == total)
		KERNEL(add_row)(sum, total, u->dim);
}

#endif
