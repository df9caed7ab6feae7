/* SPDX-License-Identifier: MIT */
/* Sorted ids of a partition, equal ones made one. */
#ifndef ENGINE_KERNELS_BODY_MERGE_H
#define ENGINE_KERNELS_BODY_MERGE_H

#include "body.h"

#define MERGE_BLOCK 256u

/* Ids that equal the one before, and the items that they go into. On a kernel's stack. */
struct merge_again {
	u32 count;
	u32 items[MERGE_BLOCK];
	u16 words[MERGE_BLOCK];
};

INLINE float merge_float(u32 bits)
{
	float x;

	__builtin_memcpy(&x, &bits, sizeof(x));
	return x;
}

INLINE u64 merge_item(const u64 *sorted, const u64 *payloads, u64 k, u32 *gain,
		      const enum kernel_words form)
{
	u64 word = sorted[k], payload;

	*gain = form == KERNEL_WORDS_ONES ? F32_ONE : (u32)word;
	if (form != KERNEL_WORDS_PAIRED)
		return form == KERNEL_WORDS_ONES ? word : word >> 32;
	payload = payloads[(u32)word];
	*gain = (u32)payload;
	return word >> 32 << 32 | payload >> 32;
}

/* Under way: what a block reads, what it writes, how far it is. */
struct merge_place {
	const u64 *sorted, *payload;
	u32 *tokens, *samples, *gains;
	u64 at, columns, before;
	u64 row_mask;
	u32 row_bits, token_mask, repeats;
};

/*
 * Whether an id equals the one before is a coin toss in skewed batches: nothing here
 * branches on it, and no gain waits for the one before.
 */
INLINE void merge_each(struct merge_place *m, u64 first, u64 last, u64 begin,
		       struct merge_again *again, const enum kernel_words form)
{
	u32 lost;

	for (u64 k = first; k < last; k++) {
		u32 gain, *to;
		u64 item = merge_item(m->sorted, m->payload, k, &gain, form);
		u32 equal = item == m->before;

		m->at += !equal;
		m->columns += m->before >> m->row_bits != item >> m->row_bits;
		m->tokens[m->at - 1] = (u32)(item >> m->row_bits) & m->token_mask;
		m->samples[m->at - 1] = (u32)(item & m->row_mask);
		to = equal ? &lost : m->gains + m->at - 1;
		*to = gain;
		again->words[m->repeats] = (u16)(k - begin);
		again->items[m->repeats] = (u32)(m->at - 1);
		m->repeats += equal;
		m->before = item;
	}
}

#ifdef VEC_WORDS
/* So many words from k on, one stands before them. Return: false where some are equal. */
INLINE bool merge_vector(struct merge_place *m, u64 k, const enum kernel_words form)
{
	const u32 shift = form == KERNEL_WORDS_ONES ? 0 : 32;
	vec_words word = vec_words_load(m->sorted + k), item = word >> shift;
	vec_words before = vec_words_load(m->sorted + k - 1) >> shift;

	if (vec_words_equal(item, before))
		return false;
	vec_words_store_low(m->tokens + m->at, item >> m->row_bits & m->token_mask);
	vec_words_store_low(m->samples + m->at, item & m->row_mask);
	if (form == KERNEL_WORDS_ONES)
		word = word * 0 + F32_ONE;
	vec_words_store_low(m->gains + m->at, word);
	m->at += VEC_WORDS;
	m->columns += VEC_WORDS - (u32)__builtin_popcount(vec_words_equal(item >> m->row_bits,
									  before >> m->row_bits));
	m->before = m->sorted[k + VEC_WORDS - 1] >> shift;
	return true;
}

INLINE void merge_stretch(struct merge_place *m, u64 first, u64 last, struct merge_again *again,
			  const enum kernel_words form)
{
	u64 k = m->before == ~0ull ? first + 1 : first, end;

	merge_each(m, first, k, first, again, form);
	for (; form != KERNEL_WORDS_PAIRED && last - k >= VEC_WORDS; k = end) {
		end = k + VEC_WORDS;
		if (!merge_vector(m, k, form))
			merge_each(m, k, end, first, again, form);
	}
	merge_each(m, k, last, first, again, form);
}
#else
INLINE void merge_stretch(struct merge_place *m, u64 first, u64 last, struct merge_again *again,
			  const enum kernel_words form)
{
	merge_each(m, first, last, first, again, form);
}
#endif

INLINE void merge_block(struct kernel_merge *m, u64 first, u64 last, struct merge_again *again,
			const enum kernel_words form)
{
	struct merge_place place = {
		.sorted = m->sorted,
		.payload = m->payload,
		.tokens = m->tokens,
		.samples = m->samples,
		.gains = (u32 *)m->gains,
		.at = m->count,
		.columns = m->columns,
		.before = m->last,
		.row_bits = form == KERNEL_WORDS_PAIRED ? 32 : m->row_bits,
		.token_mask = m->token_mask,
	};

	place.row_mask = (1ull << place.row_bits) - 1;
	merge_stretch(&place, first, last, again, form);
	again->count = place.repeats;
	m->count = place.at;
	m->columns = place.columns;
	m->last = place.before;
}

INLINE void merge_range(struct kernel_merge *m, u64 first, u64 last, const enum kernel_words form)
{
	struct merge_again again;

	for (u64 end; first < last; first = end) {
		end = last - first > MERGE_BLOCK ? first + MERGE_BLOCK : last;
		merge_block(m, first, end, &again, form);
		for (u32 i = 0; i < again.count; i++) {
			u32 gain;

			merge_item(m->sorted, m->payload, first + again.words[i], &gain, form);
			m->gains[again.items[i]] += merge_float(gain);
		}
	}
}

void KERNEL(merge)(struct kernel_merge *m, u64 first, u64 last)
{
	switch (m->form) {
	case KERNEL_WORDS_PAIRED:
		return merge_range(m, first, last, KERNEL_WORDS_PAIRED);
	case KERNEL_WORDS_PACKED:
		return merge_range(m, first, last, KERNEL_WORDS_PACKED);
	case KERNEL_WORDS_ONES:
		return merge_range(m, first, last, KERNEL_WORDS_ONES);
	}
}

#ifdef VEC_WORDS
INLINE void tally_from(const u64 *sorted, u64 k, u64 last, u32 low, u32 row_bits, u32 *equal,
		       u32 *alike)
{
	for (; k < last; k += VEC_WORDS) {
		vec_words item = vec_words_load(sorted + k) >> low;
		vec_words before = vec_words_load(sorted + k - 1) >> low;
		u32 lanes = last - k < VEC_WORDS ? (1u << (last - k)) - 1 : (1u << VEC_WORDS) - 1;

		*equal += (u32)__builtin_popcount(vec_words_equal(item, before) & lanes);
		*alike += (u32)__builtin_popcount(
			vec_words_equal(item >> row_bits, before >> row_bits) & lanes);
	}
}
#else
INLINE void tally_from(const u64 *sorted, u64 k, u64 last, u32 low, u32 row_bits, u32 *equal,
		       u32 *alike)
{
	for (; k < last; k++) {
		u64 item = sorted[k] >> low, before = sorted[k - 1] >> low;

		*equal += item == before;
		*alike += item >> row_bits == before >> row_bits;
	}
}
#endif

void KERNEL(tally)(const struct kernel_merge *m, const u32 *starts, u32 partitions, u32 *items,
		   u32 *columns)
{
	u32 low = m->form == KERNEL_WORDS_ONES ? 0 : 32, row_bits = m->row_bits;

	for (u32 p = 0; p < partitions; p++) {
		u32 first = starts[p], last = starts[p + 1], equal = 0, alike = 0;

		tally_from(m->sorted, first + 1ull, last, low, row_bits, &equal, &alike);
		items[p] = last - first - equal;
		columns[p] = last - first - alike;
	}
}

#endif
