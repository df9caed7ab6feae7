/* SPDX-License-Identifier: MIT */
/* Words that are written to memory, and how wrong words are told. */
#ifndef CLI_VALIDATE_PATTERNS_H
#define CLI_VALIDATE_PATTERNS_H

#include <stddef.h>
#include <stdint.h>

#include "../board/finding.h"

/* The word at an index of the memory, which follows from @key. */
typedef uint32_t (*pattern_fn)(uint64_t index, uint64_t key);

uint32_t pattern_same(uint64_t index, uint64_t key);	/* @key itself */
uint32_t pattern_walking(uint64_t index, uint64_t key); /* one bit, which walks with the index */
uint32_t pattern_address(uint64_t index, uint64_t key); /* another word for each index */
uint32_t pattern_random(uint64_t index, uint64_t key);	/* splitmix64 of both */

void pattern_fill(uint32_t *words, size_t count, uint64_t first, pattern_fn pattern, uint64_t key);

/**
 * pattern_compare() - compare words that were read with those that were written
 * @words: [@count] words, the first of which has index @first
 * @what: words for the sentence that name the pattern
 * @dim: words of a row
 *
 * Fails @f with row, column, both words, the bits that differ in any word, and how many words do.
 */
void pattern_compare(const uint32_t *words, size_t count, uint64_t first, pattern_fn pattern,
		     uint64_t key, const char *what, size_t dim, struct finding *f);

#endif
