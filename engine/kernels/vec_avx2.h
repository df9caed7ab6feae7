/* SPDX-License-Identifier: MIT */
/* Vectors of eight floats with fused multiply-add, for files built with -mavx2 -mfma. */
#ifndef ENGINE_KERNELS_VEC_AVX2_H
#define ENGINE_KERNELS_VEC_AVX2_H

#include "../types.h"
#include "vec_fused.h"

#define VEC_STREAMS 1
#define VARIANT avx2
#define VEC 8u

typedef float vec __attribute__((vector_size(32)));
typedef s32 vec_mask __attribute__((vector_size(32)));
typedef float vec_memory __attribute__((vector_size(32), aligned(4), may_alias));

INLINE void vec_stream(float *p, vec v)
{
	/* No builtin has the same name everywhere. */
	__asm__ volatile("vmovntps %1, %0" : "=m"(*(vec_memory *)p) : "x"(v));
}

/* Streamed stores are seen before stores from here on. */
INLINE void vec_stream_end(void)
{
	__builtin_ia32_sfence();
}

/* Four words, for what has a use for as many at once. */
#define VEC_WORDS 4u

typedef u64 vec_words __attribute__((vector_size(32)));
typedef u64 vec_words_memory __attribute__((vector_size(32), aligned(8), may_alias));
typedef u32 vec_words_low __attribute__((vector_size(16)));
typedef u32 vec_words_low_memory __attribute__((vector_size(16), aligned(4), may_alias));
typedef double vec_words_signs __attribute__((vector_size(32)));
typedef long long vec_words_signed __attribute__((vector_size(32)));
typedef s32 vec_ints_memory __attribute__((vector_size(16), aligned(4), may_alias));

INLINE vec_words vec_words_load(const u64 *p)
{
	return *(const vec_words_memory *)p;
}

/* Signed numbers of 4 or 8 bytes out of shared memory: no compiler reads them again after this. */
INLINE vec_words vec_words_once(const void *p, const u32 width)
{
	vec_words v;

	if (width == sizeof(u64))
		v = *(const vec_words_memory *)p;
	else
		v = (vec_words) __builtin_convertvector(*(const vec_ints_memory *)p,
							vec_words_signed);
	__asm__ volatile("" : "+x"(v));
	return v;
}

/* A bit for each that equals. */
INLINE u8 vec_words_equal(vec_words a, vec_words b)
{
	return (u8)__builtin_ia32_movmskpd256((vec_words_signs)(a == b));
}

/* The lower halves. */
INLINE void vec_words_store_low(u32 *p, vec_words v)
{
	*(vec_words_low_memory *)p = __builtin_convertvector(v, vec_words_low);
}

/* The same past the caches, to where such a vector may stand. */
INLINE void vec_words_stream_low(u32 *p, vec_words v)
{
	__asm__ volatile("vmovntdq %1, %0"
			 : "=m"(*(vec_words_low_memory *)p)
			 : "x"(__builtin_convertvector(v, vec_words_low)));
}

/* Doubles, of which a vector of floats makes two. */
#define VEC_DOUBLES 4u

typedef double vec_doubles __attribute__((vector_size(32)));
typedef float vec_half __attribute__((vector_size(16)));

INLINE vec_doubles vec_widen(vec x, const u32 half)
{
	const vec_half part = half ? __builtin_shufflevector(x, x, 4, 5, 6, 7) :
				     __builtin_shufflevector(x, x, 0, 1, 2, 3);

	return __builtin_convertvector(part, vec_doubles);
}

INLINE bool vec_any_nan(vec x)
{
	return __builtin_ia32_movmskps256((vec)(x != x));
}

INLINE vec vec_fma(vec a, vec b, vec c)
{
	return __builtin_ia32_vfmaddps256(a, b, c);
}

INLINE vec vec_sqrt(vec x)
{
	return __builtin_ia32_sqrtps256(x);
}

#endif
