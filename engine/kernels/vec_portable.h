/* SPDX-License-Identifier: MIT */
/* Vectors of four floats, in the operations that every processor has. */
#ifndef ENGINE_KERNELS_VEC_PORTABLE_H
#define ENGINE_KERNELS_VEC_PORTABLE_H

#include "fma_exact.h"
#include "root.h"

#define VEC 4u

typedef float vec __attribute__((vector_size(16)));
typedef s32 vec_mask __attribute__((vector_size(16)));
typedef float vec_memory __attribute__((vector_size(16), aligned(4), may_alias));

INLINE float one_fma(float a, float b, float c)
{
	return fma_exact(a, b, c);
}

INLINE vec vec_fma(vec a, vec b, vec c)
{
	return (vec){ fma_exact(a[0], b[0], c[0]), fma_exact(a[1], b[1], c[1]),
		      fma_exact(a[2], b[2], c[2]), fma_exact(a[3], b[3], c[3]) };
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
