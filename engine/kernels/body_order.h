/* SPDX-License-Identifier: MIT */
/*
 * In which order an update takes its rows, and what it fetches ahead of their
 * turns. Each row is changed alone, so that the bits are those of any order.
 */
#ifndef ENGINE_KERNELS_BODY_ORDER_H
#define ENGINE_KERNELS_BODY_ORDER_H

#include "body_update.h"

#define TURNS_BLOCK 64u
#define TURNS_LEAP 37u
#define TURNS_PAGE_FLOATS 1024u /* a page of 4 KiB */

/*
 * Whether rows that are fetched one by one are taken by blocks in leaps, not as they ascend. Within
 * a page of each other they come later as they ascend, and sooner where they are further apart; why
 * is not known. That processors fetch what would come next in a page is a guess.
 */
INLINE bool turns_leap(const struct kernel_update *u, const struct kernel_group *groups, u64 n)
{
	return u->fetch != KERNEL_FETCH_AGAIN && n >= TURNS_BLOCK &&
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

/* Where fetch_update() never says so, compilers leave out what it needs. */
INLINE bool rows_again(const struct kernel_update *u, const u32 dim, const struct slots_kept slots)
{
	const struct fetch_way again = { 0, KERNEL_FETCH_AGAIN };

	return fetch_update(again, dim, slots.wide).form == KERNEL_FETCH_AGAIN &&
	       u->fetch == KERNEL_FETCH_AGAIN;
}

/* The translations of UPDATE_TOUCH groups at once, at the first turn also of those before them. */
INLINE void rows_touch(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
		       u64 end, const struct slots_kept slots)
{
	const u64 next = i + UPDATE_TOUCH_AHEAD, last = next + UPDATE_TOUCH;

	for (u64 k = i ? next : 0; k < last && k < end; k++)
		row_ahead(u, groups[k].row, 1, slots);
}

/* Row, slots and gradient of the group that is @far after the @i-th, if there is one. */
INLINE void group_ahead(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
			u64 far, u64 end, const u32 *occ, const struct kernel_segment *only,
			const u32 dim, const struct slots_kept slots)
{
	if (end - i <= far)
		return;
	row_ahead(u, groups[i + far].row, dim, slots);
	gradient_ahead(u, &groups[i + far], occ, only, dim);
}

/*
 * Fetches again, for KERNEL_FETCH_AGAIN, at the @i-th turn of @end. @only: as for gradient_ahead().
 * The first turn also fetches the groups up to there, for which there was no turn before.
 */
INLINE void groups_again(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
			 u64 end, const u32 *occ, const struct kernel_segment *only, const u32 dim,
			 const struct slots_kept slots)
{
	const u32 times = update_times(dim, slots.wide);

	if (!(i % UPDATE_TOUCH))
		rows_touch(u, groups, i, end, slots);
	for (u64 k = 0; !i && k < times * UPDATE_STEP; k++)
		group_ahead(u, groups, 0, k, end, occ, only, dim, slots);
	UNROLL
	for (u32 t = times; t; t--)
		group_ahead(u, groups, i, t * UPDATE_STEP, end, occ, only, dim, slots);
}

/*
 * Fetches u->prefetch groups ahead of the @i-th turn, and twice as far, where gradients are
 * only looked for: those of a block in any order, an eighth of them late. In time for all took
 * longer. Gradients of @only one segment are left to struct run unless rows are fetched again.
 */
INLINE void rows_ahead(const struct kernel_update *u, const struct kernel_group *groups, u64 i,
		       u64 n, u64 ahead, const bool leap, const u32 *occ,
		       const struct kernel_segment *only, const u32 dim,
		       const struct slots_kept slots)
{
	const u64 near = u->prefetch, left = n + ahead - i;
	const struct kernel_group *group;

	if (!only && near && left > 2 * near)
		update_far_ahead(u, &groups[i + 2 * near], occ);
	if (rows_again(u, dim, slots)) {
		if (near)
			groups_again(u, groups, i, n + ahead, occ, only, dim, slots);
		return;
	}
	if (!near || left <= near)
		return;
	group = &groups[turn_ahead(i + near, n, ahead, leap)];
	row_ahead(u, group->row, dim, slots);
	if (!only)
		gradient_ahead(u, group, occ, NULL, dim);
}

#endif
