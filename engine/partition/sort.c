// SPDX-License-Identifier: MIT
/*
 * A radix sort, least digit first, of the words of a PARTITION. It sorts either the words of one
 * partition, which lie in the nearest cache, or all words of a core, where those lie in the second.
 * Digits are no wider than the number of words is worth.
 *
 * Words and counts belong to the caller's struct pcsr_words; no lock is needed.
 */
#include "partition.h"

#define FEW 16u

u32 pcsr_digits(struct pcsr_digit *digits, u64 count, u32 bits, u32 top)
{
	u32 most = 5, passes, last, each, at = 0;

	while (most < PCSR_DIGIT_MAX && 1ull << (most + 1) < count)
		most++;
	passes = (bits + most - 1) / most;
	last = (bits + passes - 1) / passes;
	last = last < top ? top : last;
	each = passes > 1 ? (bits - last + passes - 2) / (passes - 1) : 0;
	for (passes = 0; at + last < bits; at += digits[passes++].bits)
		digits[passes] = (struct pcsr_digit){ at, bits - last - at < each ?
								  bits - last - at :
								  each };
	digits[passes++] = (struct pcsr_digit){ at, bits - at };
	return passes;
}

INLINE void count_word_passes(const u64 *words, u64 count, const struct pcsr_digit *digits,
			      u32 *places, const u32 passes)
{
	for (u64 i = 0; i < count; i++) {
		for (u32 d = 0; d < passes; d++)
			places[(d << PCSR_DIGIT_MAX) +
			       (words[i] >> digits[d].shift & ((1u << digits[d].bits) - 1))]++;
	}
}

static void count_word_digits(const u64 *words, u64 count, const struct pcsr_digit *digits,
			      u32 passes, u32 *places)
{
	if (passes == 2)
		count_word_passes(words, count, digits, places, 2);
	else if (passes == 3)
		count_word_passes(words, count, digits, places, 3);
	else
		count_word_passes(words, count, digits, places, passes);
}

void pcsr_sum_up(u32 *places, u32 bits)
{
	u32 sum = 0;

	for (u32 i = 0; i < 1u << bits; i++) {
		u32 count = places[i];

		places[i] = sum;
		sum += count;
	}
}

static void scatter_words(struct command *command, const u64 *from, u64 *to, u64 count,
			  const struct pcsr_digit *digit, u32 *places)
{
	u32 shift = digit->shift, mask = (1u << digit->bits) - 1;

	for (u64 i = 0; i < count;) {
		for (u64 end = piece_end(i, count); i < end; i++)
			to[places[from[i] >> shift & mask]++] = from[i];
		if (i < count && piece_over(command))
			return;
	}
}

static void insert_words(u64 *words, u64 count, u32 low)
{
	for (u64 i = 1; i < count; i++) {
		u64 word = words[i], at = i;

		for (; at && words[at - 1] >> low > word >> low; at--)
			words[at] = words[at - 1];
		words[at] = word;
	}
}

void pcsr_sort(struct command *command, const struct pcsr_words *words, u64 first, u64 last,
	       u32 low, u32 bits)
{
	u64 *from = words->words + first, *to = words->other + first, count = last - first;
	struct pcsr_digit digits[PCSR_PASSES_MAX];
	u32 passes;

	if (count <= FEW || !bits) {
		insert_words(from, bits ? count : 0, low);
		return;
	}
	passes = pcsr_digits(digits, count, bits, 0);
	for (u32 d = 0; d < passes; d++) {
		memset(words->places + (d << PCSR_DIGIT_MAX), 0, sizeof(u32) << digits[d].bits);
		digits[d].shift += low;
	}
	for (u64 at = 0, end; at < count; at = end) {
		end = piece_end(at, count);
		count_word_digits(from + at, end - at, digits, passes, words->places);
		if (end < count && piece_over(command))
			return;
	}
	for (u32 d = 0; d < passes; d++) {
		u32 *places = words->places + (d << PCSR_DIGIT_MAX);
		u64 *swap = from;

		pcsr_sum_up(places, digits[d].bits);
		scatter_words(command, from, to, count, &digits[d], places);
		if (command_is_cut(command))
			return;
		from = to;
		to = swap;
	}
	if (from != words->words + first)
		piece_copy(command, to, from, count * sizeof(*to));
}

void pcsr_sort_flat(const struct pcsr_job *job, struct pcsr_words *words, u64 count)
{
	for (u32 d = 1; d < job->passes; d++) {
		struct pcsr_digit digit = job->digits[d];
		u64 *swap = words->words;

		digit.shift += job->item_shift + job->row_bits;
		scatter_words(job->command, words->words, words->other, count, &digit,
			      words->places + (d << PCSR_DIGIT_MAX));
		words->words = words->other;
		words->other = swap;
	}
}
