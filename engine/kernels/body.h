/* SPDX-License-Identifier: MIT */
/*
 * The parts that the files of one variant share. Each of them includes the variant's vec_*.h and
 * then the body_*.h of its kernels. Vector and single-float code give the same bits, since every
 * column is computed alone.
 */
#ifndef ENGINE_KERNELS_BODY_H
#define ENGINE_KERNELS_BODY_H

#include "variants.h"

/* A function that several files of this variant know: vec_*.h defines VARIANT. */
#define KERNEL(name) KERNEL_OF(name, VARIANT)
#define KERNEL_OF(name, variant) KERNEL_JOIN(name, variant)
#define KERNEL_JOIN(name, variant) kernel_##name##_##variant

/* The members of struct kernel_ops that are functions. */
#define KERNEL_OPS(X) \
	X(lookup) \
	X(lookup_max) \
	X(scales) \
	X(update_rows) \
	X(row_gradient) \
	X(run_gradient) \
	X(add_row) \
	X(update_row) \
	X(merge) \
	X(tally) \
	X(take_ids) \
	X(all_finite)

#define KERNEL_DECLARE(op) __typeof__(*((struct kernel_ops *)0)->op) KERNEL(op);
#define KERNEL_ENTRY(op) .op = KERNEL(op),

KERNEL_OPS(KERNEL_DECLARE)

#define UNROLL _Pragma("GCC unroll 8")
#define LINE_FLOATS 16u /* in a cache line */

/* That most tables have: what is hot is compiled apart for each. */
#define USUAL_DIMS(X) X(16) X(32) X(64) X(128)

#ifndef VEC_LOADS
INLINE vec vec_load(const float *p)
{
	return *(const vec_memory *)p;
}
#endif

INLINE void vec_store(float *p, vec v)
{
	*(vec_memory *)p = v;
}

/*
 * The first n floats of a vector, n from 1 to VEC. Where a vector cannot be had in part
 * (VEC_PARTS 0) n is VEC, and the columns that are left over are computed one by one.
 */
#ifdef VEC_PARTS
INLINE vec vec_get(const float *p, u64 n)
{
	return n < VEC ? vec_load_part(p, n) : vec_load(p);
}

INLINE vec vec_part(vec v, u64 n)
{
	return n < VEC ? vec_keep_part(v, n) : v;
}

INLINE void vec_put(float *p, vec v, u64 n)
{
	if (n < VEC)
		vec_store_part(p, v, n);
	else
		vec_store(p, v);
}
#else
#define VEC_PARTS 0

INLINE vec vec_get(const float *p, u64 n)
{
	(void)n;
	return vec_load(p);
}

INLINE vec vec_part(vec v, u64 n)
{
	(void)n;
	return v;
}

INLINE void vec_put(float *p, vec v, u64 n)
{
	(void)n;
	vec_store(p, v);
}
#endif

/* Past the caches, where the processor can: to whole lines that nobody reads soon. */
#ifndef VEC_STREAMS
#define VEC_STREAMS 0

INLINE void vec_stream(float *p, vec v)
{
	vec_store(p, v);
}

INLINE void vec_stream_end(void)
{
}
#endif

INLINE vec vec_all(float x)
{
	return x - (vec){ 0 };
}

INLINE vec vec_select(vec_mask m, vec yes, vec no)
{
	return (vec)(((vec_mask)yes & m) | ((vec_mask)no & ~m));
}

/*
 * Adds @x to a check, which is NaN where any number so far was not finite, else 0. An addition
 * would have each wait for the one before.
 */
INLINE vec vec_check(vec check, vec x)
{
	return (vec)((vec_mask)check | (vec_mask)(x - x));
}

INLINE vec vec_clip(vec x, float low, float high)
{
	vec l = vec_all(low), h = vec_all(high);

	x = vec_select(x < l, l, x);
	return vec_select(x > h, h, x);
}

INLINE float one_clip(float x, float low, float high)
{
	x = x < low ? low : x;
	return x > high ? high : x;
}

/* One register and displacements: compilers would keep a register, or worse, for each line. */
#define PREFETCH_FLOATS(NAME, CACHE) \
	INLINE void NAME(const float *p, u32 count) \
	{ \
		__asm__("" : "+r"(p)); \
		UNROLL \
		for (u32 i = 0; i < count; i += LINE_FLOATS) \
			__builtin_prefetch(p + i, 0, CACHE); \
	}

PREFETCH_FLOATS(prefetch_floats, 2) /* into the second cache: updates always */
PREFETCH_FLOATS(prefetch_near, 3)   /* into the first, which some machines want for lookups */

#endif
