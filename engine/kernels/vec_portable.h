/* SPDX-License-Identifier: MIT */
/* Vectors of four floats, in the operations that every processor has. */
#ifndef ENGINE_KERNELS_VEC_PORTABLE_H
#define ENGINE_KERNELS_VEC_PORTABLE_H

#include "fma_exact.h"
#include "root.h"

#define VARIANT portable
#define VEC 4u

typedef float vec __attribute__((vector_size(16)));
typedef s32 vec_mask __attribute__((vector_size(16)));
typedef float vec_memory __attribute__((vector_size(16), aligned(4), may_alias));
typedef double vec_double __attribute__((vector_size(32)));
typedef u64 vec_bits __attribute__((vector_size(32)));

#define VEC_LOADS

/*
 * A copy in place of a look through vec_memory, whose lesser alignment stays with the value: gcc 14
 * for arm64 breaks down when it hands such a value to a function (vec_fma).
 */
INLINE vec vec_load(const float *p)
{
	vec v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

INLINE float one_fma(float a, float b, float c)
{
	return fma_exact(a, b, c);
}

/*
 * fma_exact() of four at once, which branches on nothing: what is rounded to odd is a coin toss. A
 * function, since hundreds of copies would be most of the code, and take minutes to compile. Files
 * that multiply nothing do not call it.
 */
static __attribute__((__noinline__, __unused__)) vec vec_fma(vec a, vec b, vec c)
{
	vec_double product = __builtin_convertvector(a, vec_double) *
			     __builtin_convertvector(b, vec_double);
	vec_double addend = __builtin_convertvector(c, vec_double);
	vec_double sum = product + addend, part = sum - product;
	vec_double error = (product - (sum - part)) + (addend - part);
	vec_bits bits = (vec_bits)sum, apart = (bits ^ (vec_bits)error) >> 63;
	vec_bits inexact = (vec_bits)((error < 0.0) | (error > 0.0));

	bits += inexact & ((bits & 1) - 1) & (1 - 2 * apart);
	return __builtin_convertvector((vec_double)bits, vec);
}

/* Doubles, of which a vector of floats makes two. */
#define VEC_DOUBLES 2u

typedef double vec_doubles __attribute__((vector_size(16)));

INLINE vec_doubles vec_widen(vec x, const u32 half)
{
	return (vec_doubles){ x[2 * half], x[2 * half + 1] };
}

INLINE bool vec_any_nan(vec x)
{
	vec_mask nan = x != x;

	return nan[0] | nan[1] | nan[2] | nan[3];
}

INLINE float one_sqrt(float x)
{
	return root32(x);
}

INLINE vec vec_sqrt(vec x)
{
#ifdef __SSE2__
	return __builtin_ia32_sqrtps(x);
#else
	return (vec){ root32(x[0]), root32(x[1]), root32(x[2]), root32(x[3]) };
#endif
}

#endif
