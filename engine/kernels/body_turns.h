/* SPDX-License-Identifier: MIT */
/*
 * Part of body.h: in which order an update takes its rows, and what it fetches ahead of their
 * turns. Not as they ascend, but by blocks in leaps: each row is changed alone, so that the bits
 * are the same, and a Xeon's memory gives neighbours later when they follow each other at once.
 * Longer blocks are slower where a table's rows are asked for densely.
 */

#define TURNS_BLOCK 64u
#define TURNS_LEAP 37u

/* The group whose turn is the @i-th of @n. */
INLINE u64 turn_of(u64 i, u64 n)
{
	u64 block = i & ~(u64)(TURNS_BLOCK - 1);

	return n - block < TURNS_BLOCK ? i : block + i * TURNS_LEAP % TURNS_BLOCK;
}

/* @i may be of the next call, whose @ahead groups follow the @n of this one. */
INLINE u64 turn_ahead(u64 i, u64 n, u64 ahead)
{
	return i < n ? turn_of(i, n) : n + turn_of(i - n, ahead);
}

/*
 * What is fetched @near groups ahead of the @i-th turn, and twice as far, where gradients are only
 * looked for: those of a block in any order, an eighth of them late. In time for all took longer.
 */
INLINE void rows_ahead(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
		       u64 n, u64 ahead, const u64 near, const u32 *occ, const u32 dim,
		       const u32 slot_count)
{
	const u64 left = n + ahead - i;

	if (near && left > 2 * near)
		update_far_ahead(u, &groups[i + 2 * near], occ);
	if (near && left > near)
		update_ahead(u, &groups[turn_ahead(i + near, n, ahead)], occ, dim, slot_count);
}
