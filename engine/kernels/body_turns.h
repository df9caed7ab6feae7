/* SPDX-License-Identifier: MIT */
/*
 * Part of body.h: in which order an update takes its rows, and what it fetches ahead of their
 * turns. Each row is changed alone, so that the bits are those of any order.
 */

#define TURNS_BLOCK 64u
#define TURNS_LEAP 37u
#define TURNS_PAGE_FLOATS 1024u /* of 4 KiB */

/*
 * Whether rows that are fetched one by one are taken by blocks in leaps, not as they ascend. Within
 * a page of each other they come later as they ascend, and sooner where they are further apart; why
 * is not known. That processors fetch what would come next in a page is a guess.
 */
INLINE bool turns_leap(const struct kernel_update *u, const struct kernel_group *groups, u64 n)
{
	return u->fetch != KERNEL_FETCH_BURST && n >= TURNS_BLOCK &&
	       (groups[n - 1].row - groups[0].row) * u->stride < n * TURNS_PAGE_FLOATS;
}

/* The group whose turn is the @i-th of @n. */
INLINE u64 turn_of(u64 i, u64 n, const bool leap)
{
	u64 block = i & ~(u64)(TURNS_BLOCK - 1);

	return !leap || n - block < TURNS_BLOCK ? i : block + i * TURNS_LEAP % TURNS_BLOCK;
}

/* @i may be of the next call, whose @ahead groups follow the @n of this one. */
INLINE u64 turn_ahead(u64 i, u64 n, u64 ahead, const bool leap)
{
	return i < n ? turn_of(i, n, leap) : n + turn_of(i - n, ahead, leap);
}

/* Where update_fetch() never says so, compilers leave out what bursts need. */
INLINE bool rows_in_bursts(const struct kernel_update *u, const u32 dim, const u32 slot_count)
{
	return update_fetch(KERNEL_FETCH_BURST, dim, slot_count) == KERNEL_FETCH_BURST &&
	       u->fetch == KERNEL_FETCH_BURST;
}

/*
 * Rows, slots and gradients of UPDATE_BURST groups at once, at the first turn also of those before
 * them. @only: as gradient_ahead() takes it.
 */
INLINE void rows_burst(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
		       u64 end, const u32 *occ, const struct kernel_segment *only, const u32 dim,
		       const u32 slot_count)
{
	const u64 next = i + u->prefetch, last = next + UPDATE_BURST;

	for (u64 k = i ? next : 0; k < last && k < end; k++) {
		row_ahead(u, groups[k].row, dim, slot_count);
		gradient_ahead(u, &groups[k], occ, only, dim);
	}
}

/*
 * What is fetched u->prefetch groups ahead of the @i-th turn, and twice as far, where gradients are
 * only looked for: those of a block in any order, an eighth of them late. In time for all took
 * longer. Gradients of @only one segment are left to struct run where there are no bursts.
 */
INLINE void rows_ahead(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
		       u64 n, u64 ahead, const bool leap, const u32 *occ,
		       const struct kernel_segment *only, const u32 dim, const u32 slot_count)
{
	const u64 near = u->prefetch, left = n + ahead - i;
	const struct kernel_group *group;

	if (!only && near && left > 2 * near)
		update_far_ahead(u, &groups[i + 2 * near], occ);
	if (rows_in_bursts(u, dim, slot_count)) {
		if (near && !(i % UPDATE_BURST))
			rows_burst(u, groups, i, n + ahead, occ, only, dim, slot_count);
		return;
	}
	if (!near || left <= near)
		return;
	group = &groups[turn_ahead(i + near, n, ahead, leap)];
	row_ahead(u, group->row, dim, slot_count);
	if (!only)
		gradient_ahead(u, group, occ, NULL, dim);
}
