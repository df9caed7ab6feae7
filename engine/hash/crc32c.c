// SPDX-License-Identifier: MIT
/*
 * CRC-32C (Castagnoli) of model blobs and of checkpoints, eight bytes at a time: by the processor's
 * instruction where there is one, otherwise by tables. A table is linear in its index, so each is
 * given by its entries for single bits, and the compiler computes the others.
 *
 * The functions look only at their arguments. The tables are constant.
 */
#include "crc32c.h"

#include "../port.h"

#define BASIS0(X, i) \
	X(i, 0xf26b8303u, 0xe13b70f7u, 0xc79a971fu, 0x8ad958cfu, 0x105ec76fu, 0x20bd8edeu, \
	  0x417b1dbcu, 0x82f63b78u)
#define BASIS1(X, i) \
	X(i, 0x13a29877u, 0x274530eeu, 0x4e8a61dcu, 0x9d14c3b8u, 0x3fc5f181u, 0x7f8be302u, \
	  0xff17c604u, 0xfbc3faf9u)
#define BASIS2(X, i) \
	X(i, 0xa541927eu, 0x4f6f520du, 0x9edea41au, 0x38513ec5u, 0x70a27d8au, 0xe144fb14u, \
	  0xc76580d9u, 0x8b277743u)
#define BASIS3(X, i) \
	X(i, 0xdd45aab8u, 0xbf672381u, 0x7b2231f3u, 0xf64463e6u, 0xe964b13du, 0xd725148bu, \
	  0xaba65fe7u, 0x52a0c93fu)
#define BASIS4(X, i) \
	X(i, 0x38116facu, 0x7022df58u, 0xe045beb0u, 0xc5670b91u, 0x8f2261d3u, 0x1ba8b557u, \
	  0x37516aaeu, 0x6ea2d55cu)
#define BASIS5(X, i) \
	X(i, 0xef306b19u, 0xdb8ca0c3u, 0xb2f53777u, 0x6006181fu, 0xc00c303eu, 0x85f4168du, \
	  0x0e045bebu, 0x1c08b7d6u)
#define BASIS6(X, i) \
	X(i, 0x68032cc8u, 0xd0065990u, 0xa5e0c5d1u, 0x4e2dfd53u, 0x9c5bfaa6u, 0x3d5b83bdu, \
	  0x7ab7077au, 0xf56e0ef4u)
#define BASIS7(X, i) \
	X(i, 0x493c7d27u, 0x9278fa4eu, 0x211d826du, 0x423b04dau, 0x847609b4u, 0x0d006599u, \
	  0x1a00cb32u, 0x34019664u)

#define BIT_OF(i, b, value) ((i) >> (b) & 1 ? (value) : 0)
#define ENTRY(i, a, b, c, d, e, f, g, h) \
	(BIT_OF(i, 0, a) ^ BIT_OF(i, 1, b) ^ BIT_OF(i, 2, c) ^ BIT_OF(i, 3, d) ^ BIT_OF(i, 4, e) ^ \
	 BIT_OF(i, 5, f) ^ BIT_OF(i, 6, g) ^ BIT_OF(i, 7, h))
#define FOUR(basis, i) \
	basis(ENTRY, (i)), basis(ENTRY, (i) + 1), basis(ENTRY, (i) + 2), basis(ENTRY, (i) + 3)
#define SIXTEEN(basis, i) \
	FOUR(basis, (i)), FOUR(basis, (i) + 4), FOUR(basis, (i) + 8), FOUR(basis, (i) + 12)
#define SIXTY_FOUR(basis, i) \
	SIXTEEN(basis, (i)), SIXTEEN(basis, (i) + 16), SIXTEEN(basis, (i) + 32), \
		SIXTEEN(basis, (i) + 48)
#define TABLE(basis) \
	{ SIXTY_FOUR(basis, 0), SIXTY_FOUR(basis, 64), SIXTY_FOUR(basis, 128), \
	  SIXTY_FOUR(basis, 192) }

/* tables[k][byte]: what the byte does to the checksum when k more bytes follow it. */
static const u32 tables[8][256] = {
	TABLE(BASIS0), TABLE(BASIS1), TABLE(BASIS2), TABLE(BASIS3),
	TABLE(BASIS4), TABLE(BASIS5), TABLE(BASIS6), TABLE(BASIS7),
};

static u32 eight_bytes(u32 crc, const u8 *p)
{
	u32 low = crc ^ ((u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24);

	return tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
	       tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
	       tables[0][p[7]];
}

u32 crc32c_tables(u32 crc, const void *data, u64 length)
{
	const u8 *p = data;

	crc = ~crc;
	for (; length >= 8; length -= 8, p += 8)
		crc = eight_bytes(crc, p);
	for (; length; length--, p++)
		crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
	return ~crc;
}

/* A kernel sums configurations, which are short; a process sums checkpoints. */
#if defined(__x86_64__) && !defined(__KERNEL__)
#define LANE 4096u

/* Each bit of a checksum becomes this when LANE zero bytes follow it. */
static const u32 shifts[32] = {
	0xc2a5b65eu, 0x80a71a4du, 0x04a2426bu, 0x094484d6u, 0x128909acu, 0x25121358u, 0x4a2426b0u,
	0x94484d60u, 0x2d7cec31u, 0x5af9d862u, 0xb5f3b0c4u, 0x6e0b1779u, 0xdc162ef2u, 0xbdc02b15u,
	0x7e6c20dbu, 0xfcd841b6u, 0xfc5cf59du, 0xfd559dcbu, 0xff474d67u, 0xfb62ec3fu, 0xf329ae8fu,
	0xe3bf2befu, 0xc292212fu, 0x80c834afu, 0x047c1fafu, 0x08f83f5eu, 0x11f07ebcu, 0x23e0fd78u,
	0x47c1faf0u, 0x8f83f5e0u, 0x1aeb9d31u, 0x35d73a62u,
};

static u64 shift_lane(u64 sum)
{
	u32 shifted = 0;

	for (u32 bit = 0; bit < 32; bit++)
		shifted ^= shifts[bit] & -(u32)(sum >> bit & 1);
	return shifted;
}

static u64 step_eight(u64 sum, const u8 *p)
{
	u64 eight;

	memcpy(&eight, p, sizeof(eight));
	__asm__("crc32q %1, %0" : "+r"(sum) : "rm"(eight));
	return sum;
}

/* An instruction takes three cycles and one may begin in each, so three lanes are summed side by side. */
static u64 sum_lanes(u64 sum, const u8 *p)
{
	u64 second = 0, third = 0;

	for (u32 i = 0; i < LANE; i += 8) {
		sum = step_eight(sum, p + i);
		second = step_eight(second, p + LANE + i);
		third = step_eight(third, p + 2 * LANE + i);
	}
	return shift_lane(shift_lane(sum) ^ second) ^ third;
}

static u32 by_instruction(u32 crc, const void *data, u64 length)
{
	const u8 *p = data;
	u64 sum = (u32)~crc;

	for (; length >= 3 * LANE; length -= 3 * LANE, p += 3 * LANE)
		sum = sum_lanes(sum, p);
	for (; length >= 8; length -= 8, p += 8)
		sum = step_eight(sum, p);
	for (; length; length--, p++)
		__asm__("crc32b %1, %k0" : "+r"(sum) : "rm"(*p));
	return ~(u32)sum;
}

u32 crc32c(u32 crc, const void *data, u64 length)
{
	if (__builtin_cpu_supports("sse4.2"))
		return by_instruction(crc, data, length);
	return crc32c_tables(crc, data, length);
}
#else
u32 crc32c(u32 crc, const void *data, u64 length)
{
	return crc32c_tables(crc, data, length);
}
#endif
