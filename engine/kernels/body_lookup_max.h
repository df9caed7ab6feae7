/* SPDX-License-Identifier: MIT */
/* Lookups of the largest number of each column. */
#ifndef ENGINE_KERNELS_BODY_LOOKUP_MAX_H
#define ENGINE_KERNELS_BODY_LOOKUP_MAX_H

#include "body_lookup.h"

#define MAX_BLOCK 4u /* vectors of numbers, and as many of who holds them, stay in registers */

/* The properties that are known while compiling. */
struct max_form {
	bool holders, quantized;
};

INLINE vec max_vec(const struct kernel_bag_work *w, u64 k, u64 column, u64 n,
		   const struct max_form form)
{
	const bool narrow = w->narrow;
	vec x = vec_get(lookup_row(w, k, narrow) + column, n);

	return form.quantized && !lookup_is_zero(w, k, narrow) ? vec_quantize(x, w->quantization) :
								 x;
}

INLINE float max_one(const struct kernel_bag_work *w, u64 k, u64 column)
{
	const bool narrow = w->narrow;
	float x = lookup_row(w, k, narrow)[column];

	return w->quantization && !lookup_is_zero(w, k, narrow) ? one_quantize(x, w->quantization) :
								  x;
}

INLINE u32 *max_holders(const struct kernel_bag_work *w, u64 sample, u64 column)
{
	return w->holders + sample * w->dim + column;
}

/* Occurrence k of a bag that has begun; NaN is above all, and stays. */
INLINE void max_take(const struct kernel_bag_work *w, u64 k, u64 column, const u32 count,
		     const u64 n, const struct max_form form, vec *most, vec_mask *holder)
{
	UNROLL
	for (u32 i = 0; i < count; i++) {
		vec x = max_vec(w, k, column + i * VEC, i + 1 < count ? VEC : n, form);
		vec_mask above = ~(x <= most[i]) & (most[i] == most[i]);

		most[i] = vec_select(above, x, most[i]);
		if (form.holders)
			holder[i] = (above & (s32)k) | (~above & holder[i]);
	}
}

/* Begins with the first row of a bag, or with what was found before. Return: the next occurrence. */
INLINE u64 max_begin(const struct kernel_bag_work *w, u64 sample, u64 column, const u32 count,
		     const u64 n, const struct max_form form, vec *most, vec_mask *holder)
{
	const float *out = w->out + sample * w->out_stride + column;
	const bool resumes = lookup_resumes(w, sample);
	u64 k = w->bag[sample];

	UNROLL
	for (u32 i = 0; i < count; i++) {
		const u64 floats = i + 1 < count ? VEC : n;

		most[i] = resumes ? vec_get(out + i * VEC, floats) :
				    max_vec(w, k, column + i * VEC, floats, form);
		if (form.holders && resumes)
			holder[i] = (vec_mask)vec_get(
				(const float *)max_holders(w, sample, column) + i * VEC, floats);
		else
			holder[i] = (vec_mask){ 0 } + (s32)k;
	}
	return resumes ? k : k + 1;
}

INLINE void max_block(const struct kernel_bag_work *w, u64 sample, u64 column, const u32 count,
		      const u64 n, const struct max_form form, vec *check)
{
	const u64 end = w->bag[sample + 1];
	float *out = w->out + sample * w->out_stride + column;
	vec most[MAX_BLOCK] = { { 0 } };
	vec_mask holder[MAX_BLOCK] = { { 0 } };
	u64 k = w->bag[sample];

	if (k < end || lookup_resumes(w, sample))
		k = max_begin(w, sample, column, count, n, form, most, holder);
	for (; k < end; k++) {
		if (w->prefetch && k + w->prefetch < w->rows_count)
			lookup_fetch_floats(w, k + w->prefetch, column, (count - 1) * VEC + (u32)n,
					    w->narrow, KERNEL_FETCH_SECOND);
		max_take(w, k, column, count, n, form, most, holder);
	}
	UNROLL
	for (u32 i = 0; i < count; i++) {
		const u64 floats = i + 1 < count ? VEC : n;

		most[i] = most[i] + vec_all(0.0f);
		*check = vec_check(*check, vec_part(most[i], floats));
		vec_put(out + i * VEC, most[i], floats);
		if (form.holders)
			vec_put((float *)max_holders(w, sample, column) + i * VEC, (vec)holder[i],
				floats);
	}
}

INLINE void max_column(const struct kernel_bag_work *w, u64 sample, u64 column,
		       const struct max_form form, vec *check)
{
	float *out = w->out + sample * w->out_stride + column, most = 0.0f;
	u64 k = w->bag[sample], end = w->bag[sample + 1], holder = k;

	if (lookup_resumes(w, sample)) {
		most = *out;
		holder = form.holders ? *max_holders(w, sample, column) : 0;
	} else if (k < end) {
		most = max_one(w, k++, column);
	}
	for (; k < end; k++) {
		float x = max_one(w, k, column);

		if (!(x <= most) && most == most) {
			most = x;
			holder = k;
		}
	}
	most += 0.0f;
	*check += most - most;
	*out = most;
	if (form.holders)
		*max_holders(w, sample, column) = (u32)holder;
}

INLINE void max_sample(const struct kernel_bag_work *w, u64 sample, const struct max_form form,
		       vec *check)
{
	u64 c = 0;

	for (; w->dim - c >= MAX_BLOCK * VEC; c += MAX_BLOCK * VEC)
		max_block(w, sample, c, MAX_BLOCK, VEC, form, check);
	for (; w->dim - c >= VEC; c += VEC)
		max_block(w, sample, c, 1, VEC, form, check);
	if (VEC_PARTS && c < w->dim)
		return max_block(w, sample, c, 1, w->dim - c, form, check);
	for (; c < w->dim; c++)
		max_column(w, sample, c, form, check);
}

#define MAX_FORM(NAME, ...) \
	static __attribute__((__noinline__)) bool NAME(const struct kernel_bag_work *w, u64 first, \
						       u64 last) \
	{ \
		vec check = { 0 }; \
		for (u64 s = first; s < last; s++) \
			max_sample(w, s, (struct max_form){ __VA_ARGS__ }, &check); \
		return vec_any_nan(check); \
	}

MAX_FORM(max_alone, .holders = false)
MAX_FORM(max_held, .holders = true)
MAX_FORM(max_alone_quantized, .quantized = true)
MAX_FORM(max_held_quantized, .holders = true, .quantized = true)

bool KERNEL(lookup_max)(const struct kernel_bag_work *w, u64 first, u64 last)
{
	if (w->quantization)
		return w->holders ? max_held_quantized(w, first, last) :
				    max_alone_quantized(w, first, last);
	return w->holders ? max_held(w, first, last) : max_alone(w, first, last);
}

#endif
