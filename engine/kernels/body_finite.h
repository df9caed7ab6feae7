/* SPDX-License-Identifier: MIT */
/* Looks for floats that are infinite or NaN: all bits of their exponent are set. */
#ifndef ENGINE_KERNELS_BODY_FINITE_H
#define ENGINE_KERNELS_BODY_FINITE_H

#include "body.h"

#define FINITE_VECTORS 4u /* at once, so that loads do not wait for each other */

INLINE u32 finite_bits(float x)
{
	u32 bits;

	__builtin_memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* All bits of each lane that is not finite. */
INLINE vec_mask vec_not_finite(vec x)
{
	const vec_mask exponent = (vec_mask){ 0 } + 0x7f800000;

	return ((vec_mask)x & exponent) == exponent;
}

bool KERNEL(all_finite)(const float *from, u64 count)
{
	vec_mask bad[FINITE_VECTORS] = { { 0 } };
	u32 any = 0;
	u64 c = 0;

	for (; count - c >= FINITE_VECTORS * VEC; c += FINITE_VECTORS * VEC) {
		UNROLL
		for (u32 i = 0; i < FINITE_VECTORS; i++)
			bad[i] |= vec_not_finite(vec_load(from + c + i * VEC));
	}
	for (u32 i = 1; i < FINITE_VECTORS; i++)
		bad[0] |= bad[i];
	for (u32 i = 0; i < VEC; i++)
		any |= (u32)bad[0][i];
	for (; c < count; c++)
		any |= (finite_bits(from[c]) & 0x7f800000) == 0x7f800000;
	return !any;
}

#endif
