/* SPDX-License-Identifier: MIT */
/*
 * Seeded work whose results are printed on one line for each case: the name of the work, and the
 * SHA-256 of all results. Processors and kernel variants are compared line by line.
 */
#ifndef EMBENG_TESTS_BITS_H
#define EMBENG_TESTS_BITS_H

#include <stdio.h>

#include "../../engine/kernels/kernels.h"
#include "../../engine/hash/sha256.h"
#include "../unit/support/test_kernels.h"

/* All NaNs count as equal, so they are hashed as one. */
static inline void hash_floats(struct sha256 *hash, const float *x, u64 count)
{
	u32 bits[256];

	for (u64 n; count; x += n, count -= n) {
		n = count < 256 ? count : 256;
		for (u64 i = 0; i < n; i++)
			bits[i] = x[i] != x[i] ? 0x7fc00000 : bits_of(x[i]);
		sha256_update(hash, bits, n * sizeof(bits[0]));
	}
}

static inline void hash_float(struct sha256 *hash, float x)
{
	hash_floats(hash, &x, 1);
}

static inline void hash_double(struct sha256 *hash, double x)
{
	u64 bits = 0x7ff8000000000000;

	if (x == x)
		memcpy(&bits, &x, sizeof(bits));
	sha256_update(hash, &bits, sizeof(bits));
}

static inline void hash_print(struct sha256 *hash, const char *title)
{
	u8 digest[SHA256_BYTES];

	sha256_final(hash, digest);
	printf("%s: ", title);
	for (u32 i = 0; i < SHA256_BYTES; i++)
		printf("%02x", digest[i]);
	printf("\n");
}

void bits_of_numbers(void);
void bits_of_rows(const struct kernel_ops *ops);
void bits_of_updates(const struct kernel_ops *ops);
void bits_of_engine(const char *variant);

#endif
