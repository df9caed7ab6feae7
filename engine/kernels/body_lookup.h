/* SPDX-License-Identifier: MIT */
/* Pooling: what every form of lookup is made of, and the forms that several files share. */
#ifndef ENGINE_KERNELS_BODY_LOOKUP_H
#define ENGINE_KERNELS_BODY_LOOKUP_H

#include "body_quantize.h"

/* The properties that are known while compiling. */
struct lookup_form {
	bool weighted, quantized, stream, narrow;
};

INLINE bool lookup_is_zero(const struct kernel_bag_work *w, u64 k, const bool narrow)
{
	return !narrow && w->rows[k] == KERNEL_ROW_ZERO;
}

INLINE const float *lookup_row(const struct kernel_bag_work *w, u64 k, const bool narrow)
{
	u64 row = narrow ? w->narrow[k] : w->rows[k];

	return lookup_is_zero(w, k, narrow) ? w->zero_row : w->table + row * w->stride;
}

INLINE void lookup_fetch_floats(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
				const bool narrow, const u32 fetch)
{
	if (lookup_is_zero(w, k, narrow))
		return;
	if (fetch == KERNEL_FETCH_FIRST)
		prefetch_near(lookup_row(w, k, narrow) + column, floats);
	else
		prefetch_floats(lookup_row(w, k, narrow) + column, floats);
}

/* Fetches for the turn of occurrence k. A touched row has its first line there already. */
INLINE void lookup_ahead(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
			 const bool narrow, const u32 fetch)
{
	const u32 touched = fetch == KERNEL_FETCH_TOUCH && floats > LINE_FLOATS ? LINE_FLOATS : 0;

	if (touched)
		lookup_fetch_floats(w, k + 2 * (u64)w->prefetch, column, touched, narrow, fetch);
	lookup_fetch_floats(w, k + w->prefetch, column + touched, floats - touched, narrow, fetch);
}

/* Occurrences below this one have one to fetch ahead: to ask each of them costs 4 to 14 %. */
INLINE u64 lookup_ahead_end(const struct kernel_bag_work *w, u64 ahead, u64 end)
{
	u64 last = w->rows_count > ahead ? w->rows_count - ahead : 0;

	if (!ahead)
		return 0;
	return last < end ? last : end;
}

INLINE bool lookup_resumes(const struct kernel_bag_work *w, u64 sample)
{
	return w->resume && !sample;
}

/* The row of occurrence k: count vectors, the last of n floats. */
INLINE void lookup_add(const struct kernel_bag_work *w, u64 k, const float *row, const u32 count,
		       const u64 n, const struct lookup_form form, vec *acc)
{
	UNROLL
	for (u32 i = 0; i < count; i++) {
		vec x = vec_get(row + i * VEC, i + 1 < count ? VEC : n);

		if (form.quantized && !lookup_is_zero(w, k, form.narrow))
			x = vec_quantize(x, w->quantization);
		acc[i] = form.weighted ? vec_fma(vec_all(w->weights[k]), x, acc[i]) : acc[i] + x;
	}
}

INLINE void lookup_turn(const struct kernel_bag_work *w, u64 k, u64 column, const u32 count,
			const u64 n, const struct lookup_form form, vec *acc, const u32 fetch)
{
	lookup_ahead(w, k, column, (count - 1) * VEC + (u32)n, form.narrow, fetch);
	lookup_add(w, k, lookup_row(w, k, form.narrow) + column, count, n, form, acc);
}

/*
 * Occurrences from k up to @end, each of which has one to fetch ahead; rows of one vector by twos,
 * so that a bag's end is foretold more often. Return: the next.
 */
INLINE u64 lookup_add_ahead(const struct kernel_bag_work *w, u64 k, u64 end, u64 column,
			    const u32 count, const u64 n, const struct lookup_form form, vec *acc,
			    const u32 fetch)
{
	for (; count == 1 && k + 2 <= end; k += 2) {
		lookup_turn(w, k, column, count, n, form, acc, fetch);
		lookup_turn(w, k + 1, column, count, n, form, acc, fetch);
	}
	for (; k < end; k++)
		lookup_turn(w, k, column, count, n, form, acc, fetch);
	return k;
}

/* Occurrences from @k on, a multiple of LOOKUP_BURST, and where that is 0 those before, too. */
INLINE void lookup_burst(const struct kernel_bag_work *w, u64 k, u64 column, u32 floats,
			 const bool narrow)
{
	u64 last = k + w->prefetch + LOOKUP_BURST;

	last = last < w->rows_count ? last : w->rows_count;
	for (u64 i = k ? k + w->prefetch : 0; i < last; i++) {
		if (!lookup_is_zero(w, i, narrow))
			prefetch_floats(lookup_row(w, i, narrow) + column, floats);
	}
}

INLINE void lookup_bag_bursts(const struct kernel_bag_work *w, u64 k, u64 end, u64 column,
			      const u32 count, const u64 n, const struct lookup_form form, vec *acc)
{
	while (k < end) {
		u64 next = (k | (LOOKUP_BURST - 1)) + 1;

		if (!(k % LOOKUP_BURST))
			lookup_burst(w, k, column, (count - 1) * VEC + (u32)n, form.narrow);
		for (next = next < end ? next : end; k < next; k++)
			lookup_add(w, k, lookup_row(w, k, form.narrow) + column, count, n, form,
				   acc);
	}
}

/* A bag's occurrences. A loop for each way to fetch: to ask in one cost 6 % at dim 64. */
INLINE void lookup_bag(const struct kernel_bag_work *w, u64 k, u64 end, u64 column, const u32 count,
		       const u64 n, const struct lookup_form form, vec *acc)
{
	u64 ahead = w->prefetch, ahead_end = lookup_ahead_end(w, ahead, end);

	if (w->fetch == KERNEL_FETCH_BURST && ahead)
		return lookup_bag_bursts(w, k, end, column, count, n, form, acc);
	if (w->fetch == KERNEL_FETCH_TOUCH)
		k = lookup_add_ahead(w, k, lookup_ahead_end(w, 2 * ahead, end), column, count, n,
				     form, acc, KERNEL_FETCH_TOUCH);
	if (w->fetch == KERNEL_FETCH_FIRST)
		k = lookup_add_ahead(w, k, ahead_end, column, count, n, form, acc,
				     KERNEL_FETCH_FIRST);
	else
		k = lookup_add_ahead(w, k, ahead_end, column, count, n, form, acc,
				     KERNEL_FETCH_SECOND);
	for (; k < end; k++)
		lookup_add(w, k, lookup_row(w, k, form.narrow) + column, count, n, form, acc);
}

/* count vectors of one sample, accumulated in registers. */
INLINE void lookup_block(const struct kernel_bag_work *w, u64 sample, u64 column, const u32 count,
			 const u64 n, const struct lookup_form form, vec *check)
{
	float *out = w->out + sample * w->out_stride + column;
	vec acc[8] = { { 0 } };

	if (lookup_resumes(w, sample)) {
		UNROLL
		for (u32 i = 0; i < count; i++)
			acc[i] = vec_get(out + i * VEC, i + 1 < count ? VEC : n);
	}
	lookup_bag(w, w->bag[sample], w->bag[sample + 1], column, count, n, form, acc);
	UNROLL
	for (u32 i = 0; i < count; i++) {
		if (w->scales)
			acc[i] *= w->scales[sample];
		*check = vec_check(*check, vec_part(acc[i], i + 1 < count ? VEC : n));
		if (form.stream)
			vec_stream(out + i * VEC, acc[i]);
		else
			vec_put(out + i * VEC, acc[i], i + 1 < count ? VEC : n);
	}
}

INLINE void lookup_blocks(const struct kernel_bag_work *w, u64 first, u64 last, u64 column,
			  const u32 count, const u64 n, const struct lookup_form form, vec *check)
{
	for (u64 s = first; s < last; s++)
		lookup_block(w, s, column, count, n, form, check);
}

/*
 * One pass over each bag, however many vectors they are up to a full block. That is asked once
 * for all samples: asked for each, a lookup takes 1 to 8 % longer.
 */
INLINE void lookup_rest(const struct kernel_bag_work *w, u64 first, u64 last, u64 column,
			const u64 count, const u64 n, const struct lookup_form form, vec *check)
{
	switch (count) {
	case 1:
		return lookup_blocks(w, first, last, column, 1, n, form, check);
	case 2:
		return lookup_blocks(w, first, last, column, 2, n, form, check);
	case 3:
		return lookup_blocks(w, first, last, column, 3, n, form, check);
	case 4:
		return lookup_blocks(w, first, last, column, 4, n, form, check);
	case 5:
		return lookup_blocks(w, first, last, column, 5, n, form, check);
	case 6:
		return lookup_blocks(w, first, last, column, 6, n, form, check);
	case 7:
		return lookup_blocks(w, first, last, column, 7, n, form, check);
	case 8:
		return lookup_blocks(w, first, last, column, 8, n, form, check);
	}
}

INLINE void lookup_column(const struct kernel_bag_work *w, u64 sample, u64 column,
			  const bool narrow, vec *check)
{
	float *out = w->out + sample * w->out_stride + column;
	u64 end = w->bag[sample + 1];
	float acc = lookup_resumes(w, sample) ? *out : 0.0f;

	for (u64 k = w->bag[sample]; k < end; k++) {
		float x = lookup_row(w, k, narrow)[column];

		if (w->quantization && !lookup_is_zero(w, k, narrow))
			x = one_quantize(x, w->quantization);
		acc = w->weights ? one_fma(w->weights[k], x, acc) : acc + x;
	}
	if (w->scales)
		acc *= w->scales[sample];
	*check += acc - acc;
	*out = acc;
}

/* Sums the rest of rows from a column on, a full block at most. */
INLINE void lookup_columns(const struct kernel_bag_work *w, u64 first, u64 last, u64 column,
			   const struct lookup_form form, vec *check)
{
	u64 left = w->dim - column, whole = left / VEC;
	const bool parts = VEC_PARTS && !form.stream; /* whole lines are streamed */

	if (parts && left % VEC == VEC / 2)
		return lookup_rest(w, first, last, column, whole + 1, VEC / 2, form, check);
	if (parts && left % VEC)
		return lookup_rest(w, first, last, column, whole + 1, left % VEC, form, check);
	lookup_rest(w, first, last, column, whole, VEC, form, check);
	for (u64 s = first; s < last; s++) {
		for (u64 c = column + whole * VEC; c < w->dim; c++)
			lookup_column(w, s, c, form.narrow, check);
	}
}

/*
 * Where a bag's rows are read more than once, that is done while they are near. Return: whether an
 * output is not finite.
 */
INLINE bool lookup_samples(const struct kernel_bag_work *w, u64 first, u64 last,
			   const struct lookup_form form)
{
	u64 blocks = w->dim ? (w->dim - 1) / (8 * VEC) : 0;
	bool once = !blocks && (VEC_PARTS || !(w->dim % VEC));
	vec check = { 0 };

	for (u64 s = first, next; s < last; s = next) {
		next = once ? last : s + 1;
		for (u64 b = 0; b < blocks; b++)
			lookup_block(w, s, b * 8 * VEC, 8, VEC, form, &check);
		lookup_columns(w, s, next, blocks * 8 * VEC, form, &check);
	}
	return vec_any_nan(check);
}

/*
 * A function of each form, not one of all: over that compilers take several times as long. These
 * have files of their own, by what they are for.
 */
typedef bool lookup_fn(const struct kernel_bag_work *w, u64 first, u64 last);

lookup_fn KERNEL(lookup_any), KERNEL(lookup_any_narrow);
lookup_fn KERNEL(lookup_weighted), KERNEL(lookup_weighted_narrow);
lookup_fn KERNEL(lookup_quantized), KERNEL(lookup_quantized_narrow);

#define LOOKUP_FORM(NAME, ...) \
	bool KERNEL(NAME)(const struct kernel_bag_work *w, u64 first, u64 last) \
	{ \
		return lookup_samples(w, first, last, (struct lookup_form){ __VA_ARGS__ }); \
	}

#endif
