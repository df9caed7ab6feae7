// SPDX-License-Identifier: MIT
/*
 * Radix sort of a partition's words, least digit first. They are few enough to lie in the
 * nearest cache, and so are the places of a digit, which is no wider than they are worth.
 */
#include "pcsr.h"

#define INLINE static inline __attribute__((always_inline))

#define FEW 16u

struct digit {
	u32 shift, bits;
};

static u32 digit_bits(u64 count, u32 bits)
{
	u32 most = 5, passes;

	while (most < PCSR_DIGIT_MAX && 1ull << (most + 1) < count)
		most++;
	passes = (bits + most - 1) / most;
	return passes ? (bits + passes - 1) / passes : 0;
}

INLINE void count_so_many(const u64 *words, u64 count, const struct digit *digits, u32 *places,
			  const u32 passes)
{
	for (u64 i = 0; i < count; i++) {
		for (u32 d = 0; d < passes; d++)
			places[(d << PCSR_DIGIT_MAX) +
			       (words[i] >> digits[d].shift & ((1u << digits[d].bits) - 1))]++;
	}
}

static void count_digits(const u64 *words, u64 count, const struct digit *digits, u32 passes,
			 u32 *places)
{
	if (passes == 2)
		count_so_many(words, count, digits, places, 2);
	else if (passes == 3)
		count_so_many(words, count, digits, places, 3);
	else
		count_so_many(words, count, digits, places, passes);
}

/* Counts become places. */
static void sum_up(u32 *places, u32 bits)
{
	u32 sum = 0;

	for (u32 i = 0; i < 1u << bits; i++) {
		u32 count = places[i];

		places[i] = sum;
		sum += count;
	}
}

static void scatter(const u64 *from, u64 *to, u64 count, const struct digit *digit, u32 *places)
{
	u32 shift = digit->shift, mask = (1u << digit->bits) - 1;

	for (u64 i = 0; i < count; i++)
		to[places[from[i] >> shift & mask]++] = from[i];
}

static void insert(u64 *words, u64 count, u32 low)
{
	for (u64 i = 1; i < count; i++) {
		u64 word = words[i], at = i;

		for (; at && words[at - 1] >> low > word >> low; at--)
			words[at] = words[at - 1];
		words[at] = word;
	}
}

void pcsr_sort(const struct pcsr_words *words, u64 first, u64 last, u32 low, u32 bits)
{
	u64 *from = words->words + first, *to = words->other + first, count = last - first;
	u32 passes = 0, each = digit_bits(count, bits);
	struct digit digits[PCSR_PASSES_MAX];

	if (count <= FEW || !bits) {
		insert(from, bits ? count : 0, low);
		return;
	}
	for (u32 at = low; at < low + bits; at += each) {
		u32 left = low + bits - at;

		memset(words->places + (passes << PCSR_DIGIT_MAX), 0, sizeof(u32) << each);
		digits[passes++] = (struct digit){ at, left < each ? left : each };
	}
	count_digits(from, count, digits, passes, words->places);
	for (u32 d = 0; d < passes; d++) {
		u32 *places = words->places + (d << PCSR_DIGIT_MAX);
		u64 *swap = from;

		sum_up(places, digits[d].bits);
		scatter(from, to, count, &digits[d], places);
		from = to;
		to = swap;
	}
	if (from != words->words + first)
		memcpy(to, from, count * sizeof(*to));
}
