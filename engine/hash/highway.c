// SPDX-License-Identifier: MIT
/*
 * HighwayHash (Alakuijala, Cox, Wassenberg: arXiv 1612.06257) of one column number, with the fixed
 * key by which partitioned CSR puts columns into buckets. Only the path for an input of four bytes
 * is here.
 *
 * The function looks only at its argument.
 */
#include "highway.h"

#define LANES 4
#define COLUMN_BYTES 4u

struct highway {
	u64 v0[LANES], v1[LANES], mul0[LANES], mul1[LANES];
};

static const u64 first_mul0[LANES] = { 0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344,
				       0x243f6a8885a308d3 };
static const u64 first_mul1[LANES] = { 0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c,
				       0x452821e638d01377 };
/* The key of the partitioned CSR's buckets. */
static const u64 key[LANES] = { 0x4451e30f87db9609, 0xca7358a1fd2737f8, 0x4b2c991fcee4fdea,
				0x0b2658e18326f6ba };

INLINE u64 swap_halves(u64 x)
{
	return x >> 32 | x << 32;
}

INLINE void start_highway(struct highway *h)
{
	for (u32 i = 0; i < LANES; i++) {
		h->mul0[i] = first_mul0[i];
		h->mul1[i] = first_mul1[i];
		h->v0[i] = first_mul0[i] ^ key[i];
		h->v1[i] = first_mul1[i] ^ swap_halves(key[i]);
	}
}

/* Bytes 3, 12, 2, 5, 14, 1, 15, 0 of @low and @high, and 11, 4, 10, 13, 9, 6, 8, 7. */
INLINE void zipper_add(u64 high, u64 low, u64 *to_high, u64 *to_low)
{
	*to_low += ((low & 0xff000000) | (high & 0xff00000000)) >> 24 |
		   ((low & 0xff0000000000) | (high & 0xff000000000000)) >> 16 | (low & 0xff0000) |
		   (low & 0xff00) << 32 | (high & 0xff00000000000000) >> 8 | low << 56;
	*to_high += ((high & 0xff000000) | (low & 0xff00000000)) >> 24 | (high & 0xff0000) |
		    (high & 0xff0000000000) >> 16 | (high & 0xff00) << 24 |
		    (low & 0xff000000000000) >> 8 | (high & 0xff) << 48 |
		    (low & 0xff00000000000000);
}

INLINE void add_lanes(struct highway *h, const u64 *lanes)
{
	for (u32 i = 0; i < LANES; i++) {
		h->v1[i] += h->mul0[i] + lanes[i];
		h->mul0[i] ^= (u64)(u32)h->v1[i] * (h->v0[i] >> 32);
		h->v0[i] += h->mul1[i];
		h->mul1[i] ^= (u64)(u32)h->v0[i] * (h->v1[i] >> 32);
	}
	zipper_add(h->v1[1], h->v1[0], &h->v0[1], &h->v0[0]);
	zipper_add(h->v1[3], h->v1[2], &h->v0[3], &h->v0[2]);
	zipper_add(h->v0[1], h->v0[0], &h->v1[1], &h->v1[0]);
	zipper_add(h->v0[3], h->v0[2], &h->v1[3], &h->v1[2]);
}

INLINE u64 rotate_halves(u64 x, u32 by)
{
	u32 low = (u32)x, high = (u32)(x >> 32);

	return (u64)(high << by | high >> (32 - by)) << 32 | (low << by | low >> (32 - by));
}

u64 highway_column(u32 column)
{
	u64 packet[LANES] = { column };
	struct highway h;

	start_highway(&h);
	for (u32 i = 0; i < LANES; i++) {
		h.v0[i] += ((u64)COLUMN_BYTES << 32) + COLUMN_BYTES;
		h.v1[i] = rotate_halves(h.v1[i], COLUMN_BYTES);
	}
	add_lanes(&h, packet);
	for (u32 round = 0; round < 4; round++) {
		u64 permuted[LANES] = { swap_halves(h.v0[2]), swap_halves(h.v0[3]),
					swap_halves(h.v0[0]), swap_halves(h.v0[1]) };

		add_lanes(&h, permuted);
	}
	return h.v0[0] + h.v1[0] + h.mul0[0] + h.mul1[0];
}
