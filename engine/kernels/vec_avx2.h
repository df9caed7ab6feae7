/* SPDX-License-Identifier: MIT */
/* Vectors of eight floats with fused multiply-add, for files built with -mavx2 -mfma. */
#ifndef ENGINE_KERNELS_VEC_AVX2_H
#define ENGINE_KERNELS_VEC_AVX2_H

#include "../types.h"
#include "vec_fused.h"

#define VEC 8u

typedef float vec __attribute__((vector_size(32)));
typedef s32 vec_mask __attribute__((vector_size(32)));
typedef float vec_memory __attribute__((vector_size(32), aligned(4), may_alias));

static inline __attribute__((always_inline)) vec vec_fma(vec a, vec b, vec c)
{
	return __builtin_ia32_vfmaddps256(a, b, c);
}

static inline __attribute__((always_inline)) vec vec_sqrt(vec x)
{
	return __builtin_ia32_sqrtps256(x);
}

#endif
