/* SPDX-License-Identifier: MIT */
/*
 * fmaf() for processors without it. The product of two floats is exact in double; the sum
 * is rounded to odd, which keeps what the final rounding to float must know (double has
 * more than 2 * 24 + 2 bits, and a float result is never below double's normal range).
 */
#ifndef ENGINE_KERNELS_FMA_EXACT_H
#define ENGINE_KERNELS_FMA_EXACT_H

#include "../types.h"

INLINE float fma_exact(float a, float b, float c)
{
	double product = (double)a * b;
	double addend = c;
	union {
		double value;
		u64 bits;
	} sum = { product + addend }, error;
	double part = sum.value - product;

	/* Knuth's two-sum; NaN where the sum is infinite or NaN, and then nothing is odd */
	error.value = (product - (sum.value - part)) + (addend - part);
	if ((error.value < 0.0 || error.value > 0.0) && !(sum.bits & 1))
		sum.bits += (sum.bits ^ error.bits) >> 63 ? ~(u64)0 : 1;
	return (float)sum.value;
}

#endif
