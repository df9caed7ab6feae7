// SPDX-License-Identifier: MIT
/*
 * SHA-256 as in FIPS 180-4, for the sections of a firmware image and for names that are made of
 * their contents. A kernel and a process compile this same file.
 *
 * The state belongs to the caller; nothing is allocated and no lock is needed.
 */
#include "sha256.h"

#include "../port.h"

static const u32 round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static u32 rotate_right(u32 x, u32 by)
{
	return x >> by | x << (32 - by);
}

static u32 load_big(const u8 *p)
{
	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

static void store_big(u8 *p, u32 x)
{
	p[0] = (u8)(x >> 24);
	p[1] = (u8)(x >> 16);
	p[2] = (u8)(x >> 8);
	p[3] = (u8)x;
}

static void expand_block(u32 w[64], const u8 *block)
{
	u32 i;

	for (i = 0; i < 16; i++)
		w[i] = load_big(block + 4 * i);
	for (; i < 64; i++) {
		u32 a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
		       (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
	}
}

static void compress_block(u32 state[8], const u8 *block)
{
	u32 w[64], v[8], i;

	expand_block(w, block);
	memcpy(v, state, sizeof(v));
	for (i = 0; i < 64; i++) {
		u32 e = v[4], a = v[0];
		u32 t1 = v[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
			 ((e & v[5]) ^ (~e & v[6])) + round_constants[i] + w[i];
		u32 t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
			 ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	static const u32 start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
				      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->state, start, sizeof(start));
	s->length = 0;
}

void sha256_update(struct sha256 *s, const void *data, u64 length)
{
	const u8 *p = data;
	u64 used = s->length % 64;

	s->length += length;
	while (length) {
		u64 piece = length < 64 - used ? length : 64 - used;

		memcpy(s->block + used, p, piece);
		p += piece;
		length -= piece;
		used += piece;
		if (used < 64)
			break;
		compress_block(s->state, s->block);
		used = 0;
	}
}

void sha256_final(struct sha256 *s, u8 digest[SHA256_BYTES])
{
	static const u8 padding[64] = { 0x80 };
	u64 bits = s->length * 8, used = s->length % 64;
	u8 tail[8];
	u32 i;

	store_big(tail, (u32)(bits >> 32));
	store_big(tail + 4, (u32)bits);
	sha256_update(s, padding, used < 56 ? 56 - used : 120 - used);
	sha256_update(s, tail, sizeof(tail));
	for (i = 0; i < 8; i++)
		store_big(digest + 4 * i, s->state[i]);
}

void sha256_digest(const void *data, u64 length, u8 digest[SHA256_BYTES])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_update(&s, data, length);
	sha256_final(&s, digest);
}
