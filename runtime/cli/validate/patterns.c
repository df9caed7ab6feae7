// SPDX-License-Identifier: MIT
/*
 * Patterns for memory tests. A pattern is a function of the word's index, so that the expected word
 * is known without keeping what was written.
 *
 * Nothing is kept; any thread may call.
 */
#include "patterns.h"

#include <inttypes.h>

#include "../frame/random.h"

uint32_t pattern_same(uint64_t index, uint64_t key)
{
	(void)index;
	return (uint32_t)key;
}

uint32_t pattern_walking(uint64_t index, uint64_t key)
{
	return UINT32_C(1) << ((index + key) & 31);
}

/* Half of the bits differ between neighbours, and no two of 2^32 words are equal. */
uint32_t pattern_address(uint64_t index, uint64_t key)
{
	return (uint32_t)index * UINT32_C(0x9e3779b1) ^ (uint32_t)key;
}

uint32_t pattern_random(uint64_t index, uint64_t key)
{
	struct random r = {key + index * 0x9e3779b97f4a7c15u};

	return (uint32_t)(random_next(&r) >> 32);
}

void pattern_fill(uint32_t *words, size_t count, uint64_t first, pattern_fn pattern, uint64_t key)
{
	for (size_t i = 0; i < count; i++)
		words[i] = pattern(first + i, key);
}

void pattern_compare(const uint32_t *words, size_t count, uint64_t first, pattern_fn pattern,
		     uint64_t key, const char *what, size_t dim, struct finding *f)
{
	size_t wrong = 0, at = 0;
	uint32_t bits = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t differs = words[i] ^ pattern(first + i, key);

		if (differs && !wrong++)
			at = i;
		bits |= differs;
	}
	if (!wrong)
		return;
	finding_fail(f,
		     "%s: row %" PRIu64 " column %" PRIu64 " reads 0x%08" PRIx32
		     ", not 0x%08" PRIx32 "; %zu of %zu words are wrong, in bits 0x%08" PRIx32,
		     what, (first + at) / dim, (first + at) % dim, words[at],
		     pattern(first + at, key), wrong, count, bits);
}
