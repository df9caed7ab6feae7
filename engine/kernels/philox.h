/* SPDX-License-Identifier: MIT */
/*
 * Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011. A keyed function of a counter: any value can be computed alone.
 */
#ifndef ENGINE_KERNELS_PHILOX_H
#define ENGINE_KERNELS_PHILOX_H

#include "../types.h"

/**
 * philox4x32() - one block of random words
 * @counter: 128-bit counter, least significant word first
 * @key: 64-bit key, least significant word first
 * @out: four random words
 */
static inline void philox4x32(const u32 counter[4], const u32 key[2], u32 out[4])
{
	u32 c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	u32 k0 = key[0], k1 = key[1];

	for (int round = 0; round < 10; round++) {
		u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;

		c0 = (u32)(b >> 32) ^ c1 ^ k0;
		c1 = (u32)b;
		c2 = (u32)(a >> 32) ^ c3 ^ k1;
		c3 = (u32)a;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

#endif
