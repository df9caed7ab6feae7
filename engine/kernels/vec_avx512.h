/* SPDX-License-Identifier: MIT */
/* Vectors of sixteen floats, whole or in part, for files built with -mavx512f -mfma. */
#ifndef ENGINE_KERNELS_VEC_AVX512_H
#define ENGINE_KERNELS_VEC_AVX512_H

#include "../types.h"
#include "vec_fused.h"

#define VARIANT avx512
#define VEC_STREAMS 1
#define VEC 16u
#define VEC_PARTS 1

typedef float vec __attribute__((vector_size(64)));
typedef s32 vec_mask __attribute__((vector_size(64)));
typedef float vec_memory __attribute__((vector_size(64), aligned(4), may_alias));

#define VEC_ALL_LANES ((u16)0xffff)
#define VEC_ROUNDING 4 /* as MXCSR says */
#define VEC_UNORDERED 3

typedef float vec_half __attribute__((vector_size(32)));
typedef float vec_half_memory __attribute__((vector_size(32), aligned(4), may_alias));

/* The first n lanes; the processor does not touch what the others would be in memory. */
INLINE u16 vec_lanes(u64 n)
{
	return (u16)((1u << n) - 1);
}

/* Loads up to half a vector, without a mask if it is known to be half. */
INLINE vec_half vec_load_half(const float *p, u64 n)
{
	const void *from = p; /* compilers differ in what these builtins point at */

	if (__builtin_constant_p(n) && n == VEC / 2)
		return *(const vec_half_memory *)p;
	return __builtin_ia32_loadups256_mask(from, (vec_half){ 0 }, (u8)vec_lanes(n));
}

/* Half a vector where that is enough: a whole one may touch one more line, masked or not. */
INLINE vec vec_load_part(const float *p, u64 n)
{
	const void *from = p;

	if (n > VEC / 2)
		return __builtin_ia32_loadups512_mask(from, (vec){ 0 }, vec_lanes(n));
	return __builtin_shufflevector(vec_load_half(p, n), (vec_half){ 0 }, 0, 1, 2, 3, 4, 5, 6, 7,
				       8, 9, 10, 11, 12, 13, 14, 15);
}

/*
 * The barrier keeps the compiler from storing by a masked vextractf32x8, which faults on what
 * it does not write.
 */
INLINE void vec_store_part(float *p, vec v, u64 n)
{
	vec_half low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
	void *to = p;

	if (n > VEC / 2)
		return __builtin_ia32_storeups512_mask(to, v, vec_lanes(n));
	__asm__("" : "+v"(low));
	__builtin_ia32_storeups256_mask(to, low, (u8)vec_lanes(n));
}

/* Zeros in place of the others. */
INLINE vec vec_keep_part(vec v, u64 n)
{
	const vec_mask lane = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

	return (vec)((vec_mask)v & (lane < (s32)n));
}

INLINE void vec_stream(float *p, vec v)
{
	/* No builtin has the same name everywhere. */
	__asm__ volatile("vmovntps %1, %0" : "=m"(*(vec_memory *)p) : "v"(v));
}

/* Streamed stores are seen before stores from here on. */
INLINE void vec_stream_end(void)
{
	__builtin_ia32_sfence();
}

/* Eight words, for what has a use for as many at once. */
#define VEC_WORDS 8u

typedef u64 vec_words __attribute__((vector_size(64)));
typedef u64 vec_words_memory __attribute__((vector_size(64), aligned(8), may_alias));
typedef u32 vec_words_low __attribute__((vector_size(32)));
typedef u32 vec_words_low_memory __attribute__((vector_size(32), aligned(4), may_alias));
typedef long long vec_words_signed __attribute__((vector_size(64)));
typedef s32 vec_ints_memory __attribute__((vector_size(32), aligned(4), may_alias));

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
	__asm__ volatile("" : "+v"(v));
	return v;
}

/* A bit for each that equals. */
INLINE u8 vec_words_equal(vec_words a, vec_words b)
{
	return __builtin_ia32_cmpq512_mask((vec_words_signed)a, (vec_words_signed)b, 0, 0xff);
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
			 : "v"(__builtin_convertvector(v, vec_words_low)));
}

/* Doubles, of which a vector of floats makes two. */
#define VEC_DOUBLES 8u

typedef double vec_doubles __attribute__((vector_size(64)));

INLINE vec_doubles vec_widen(vec x, const u32 half)
{
	const vec_half part = half ? __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15) :
				     __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);

	return __builtin_ia32_cvtps2pd512_mask(part, (vec_doubles){ 0 }, (u8)VEC_ALL_LANES,
					       VEC_ROUNDING);
}

INLINE bool vec_any_nan(vec x)
{
	return __builtin_ia32_cmpps512_mask(x, x, VEC_UNORDERED, VEC_ALL_LANES, VEC_ROUNDING);
}

INLINE vec vec_fma(vec a, vec b, vec c)
{
	return __builtin_ia32_vfmaddps512_mask(a, b, c, VEC_ALL_LANES, VEC_ROUNDING);
}

INLINE vec vec_sqrt(vec x)
{
#if __has_builtin(__builtin_ia32_sqrtps512_mask)
	return __builtin_ia32_sqrtps512_mask(x, x, VEC_ALL_LANES, VEC_ROUNDING);
#else /* clang */
	return __builtin_ia32_sqrtps512(x, VEC_ROUNDING);
#endif
}

#endif
