/* SPDX-License-Identifier: MIT */
/* Single floats where the processor has a fused multiply-add, for files built with -mfma. */
#ifndef ENGINE_KERNELS_VEC_FUSED_H
#define ENGINE_KERNELS_VEC_FUSED_H

#include "root.h"

INLINE float one_fma(float a, float b, float c)
{
	return __builtin_fmaf(a, b, c);
}

INLINE float one_sqrt(float x)
{
	return root32(x);
}

#endif
