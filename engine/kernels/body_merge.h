/* SPDX-License-Identifier: MIT */
/* Part of body.h: sorted ids of a partition, equal ones made one. */

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

INLINE u64 merge_item(const u64 *sorted, const u64 *payloads, u64 k, u32 *gain, const bool packed)
{
	u64 word = sorted[k], payload;

	*gain = (u32)word;
	if (packed)
		return word >> 32;
	payload = payloads[(u32)word];
	*gain = (u32)payload;
	return word >> 32 << 32 | payload >> 32;
}

/*
 * Whether an id equals the one before is a coin toss in skewed batches: nothing here
 * branches on it, and no gain waits for the one before.
 */
INLINE void merge_block(struct kernel_merge *m, u64 first, u64 last, struct merge_again *again,
			const bool packed)
{
	const u32 row_bits = packed ? m->row_bits : 32;
	const u64 row_mask = (1ull << row_bits) - 1;
	u32 *restrict tokens = m->tokens, *restrict samples = m->samples;
	u32 *restrict gains = (u32 *)m->gains;
	u32 *restrict items = again->items;
	u16 *restrict words = again->words;
	const u64 *restrict sorted = m->sorted, *restrict payload = m->payload;
	u64 at = m->count, before = m->last, columns = m->columns;
	u32 repeats = 0, lost;

	for (u64 k = first; k < last; k++) {
		u32 gain, *to;
		u64 item = merge_item(sorted, payload, k, &gain, packed);
		u32 equal = item == before;

		at += !equal;
		columns += before >> row_bits != item >> row_bits;
		tokens[at - 1] = (u32)(item >> row_bits);
		samples[at - 1] = (u32)(item & row_mask);
		to = equal ? &lost : gains + at - 1;
		*to = gain;
		words[repeats] = (u16)(k - first);
		items[repeats] = (u32)(at - 1);
		repeats += equal;
		before = item;
	}
	again->count = repeats;
	m->count = at;
	m->columns = columns;
	m->last = before;
}

INLINE void merge_range(struct kernel_merge *m, u64 first, u64 last, const bool packed)
{
	struct merge_again again;

	for (u64 end; first < last; first = end) {
		end = last - first > MERGE_BLOCK ? first + MERGE_BLOCK : last;
		merge_block(m, first, end, &again, packed);
		for (u32 i = 0; i < again.count; i++) {
			u32 gain;

			merge_item(m->sorted, m->payload, first + again.words[i], &gain, packed);
			m->gains[again.items[i]] += merge_float(gain);
		}
	}
}

static void merge(struct kernel_merge *m, u64 first, u64 last)
{
	if (m->payload)
		merge_range(m, first, last, false);
	else
		merge_range(m, first, last, true);
}
