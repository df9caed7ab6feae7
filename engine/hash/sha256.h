/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_SHA256_H
#define EMBENG_ENGINE_SHA256_H

#include "../types.h"

#define SHA256_BYTES 32u

struct sha256 {
	u32 state[8];
	u64 length; /* bytes so far */
	u8 block[64];
};

void sha256_init(struct sha256 *s);
void sha256_update(struct sha256 *s, const void *data, u64 length);
void sha256_final(struct sha256 *s, u8 digest[SHA256_BYTES]);

/* All of it at once. */
void sha256_digest(const void *data, u64 length, u8 digest[SHA256_BYTES]);

#endif
