/* SPDX-License-Identifier: MIT */
#include "batch.h"

#define LEAST 4096u /* occurrences: of fewer the sample would be a part that counts */
#define GROUPS 16u
#define GROUP 16u /* occurrences; of narrow rows a cache line */
#define SEEN_BITS 12u
/* Of GROUPS * GROUP 8 by chance, some 50 where a million rows follow Zipf's law. */
#define REPEATS 24u

bool batch_repeats(const struct batch_feature *f)
{
	u64 seen[(1u << SEEN_BITS) / 64] = { 0 }, apart = f->occurrences / GROUPS;
	u32 repeats = 0;

	if (f->occurrences < LEAST)
		return false;
	for (u64 k = 0; k < GROUPS * GROUP; k++) {
		u64 row = batch_row(f, k / GROUP * apart + k % GROUP);
		u32 bit = (u32)row * 0x9e3779b1u >> (32 - SEEN_BITS);

		if (row == KERNEL_ROW_ZERO)
			continue;
		repeats += seen[bit / 64] >> bit % 64 & 1;
		seen[bit / 64] |= 1ull << bit % 64;
	}
	return repeats >= REPEATS;
}
