/* SPDX-License-Identifier: MIT */
/* Chooses the rows that kernels fetch before their turn: how many ahead, and where they go. */
#ifndef ENGINE_KERNELS_AHEAD_H
#define ENGINE_KERNELS_AHEAD_H

#include "../types.h"

/**
 * enum kernel_fetch - where rows go that kernels fetch ahead, updates as update_fetch() says
 * @KERNEL_FETCH_SECOND: into the second cache
 * @KERNEL_FETCH_FIRST: into the first
 * @KERNEL_FETCH_TOUCH: into the second, the first line of each row twice as far ahead as the rest;
 *	lookup_fetch() says of which dims
 * @KERNEL_FETCH_BURST: into the second, LOOKUP_BURST rows at once; lookup_fetch() says of which
 *	dims
 * @KERNEL_FETCH_AGAIN: into the second, each row more than once; of updates alone
 */
enum kernel_fetch {
	KERNEL_FETCH_SECOND,
	KERNEL_FETCH_FIRST,
	KERNEL_FETCH_TOUCH,
	KERNEL_FETCH_BURST,
	KERNEL_FETCH_AGAIN,
};

#define PREFETCH_LOOKUP 48u
#define PREFETCH_UPDATE 32u
#define PREFETCH_MOST 256u
#define PREFETCH_LINE_BYTES 64u

/* Tables below this stay in the second cache of any processor: there prefetching only costs. */
#define PREFETCH_LEAST_BYTES (256u << 10)

/*
 * Gradients of so few bytes stay there while a feature's are applied: fetched ahead, they only
 * take the place of rows among what a processor fetches at once.
 */
#define PREFETCH_GRADIENT_BYTES (512u << 10)

/* Most rows of a table below this may stay in a third cache. */
#define PREFETCH_CACHED_BYTES (32u << 20)

/* Longer rows than of so many floats are fetched fewer ahead: more would fill the cache. */
#define PREFETCH_FULL_DIM 256u
#define PREFETCH_FULL_FIRST_DIM 64u /* ... the first */

/**
 * prefetch_rows() - rows ahead that kernels prefetch
 * @wanted: the choice of somebody who knows the machine, or 0
 * @usual: best or near it wherever it was measured: PREFETCH_*
 * @fetch: enum kernel_fetch: where they go
 * @dim: floats of a row
 * @bytes: the table's
 *
 * Return: fewer where the rows ahead would fill a cache, 0 for a table that stays in one.
 */
static inline u32 prefetch_rows(u32 wanted, u32 usual, u32 fetch, u32 dim, u64 bytes)
{
	u32 full = fetch == KERNEL_FETCH_FIRST ? PREFETCH_FULL_FIRST_DIM : PREFETCH_FULL_DIM;
	u32 rows = wanted ? wanted : usual;

	if (bytes <= PREFETCH_LEAST_BYTES)
		return 0;
	return dim <= full ? rows : rows * full / dim + 1;
}

/**
 * prefetch_lookup_rows() - rows ahead that lookups prefetch
 * @wanted: as prefetch_rows() takes it
 * @fetch: the result of lookup_fetch()
 * @dim: floats of a row
 * @bytes: the table's
 *
 * Rows of one cache line are read faster than longer ones, so that they are asked for earlier.
 *
 * Return: twice those of prefetch_rows() where a row is a line, else those.
 */
static inline u32 prefetch_lookup_rows(u32 wanted, u32 fetch, u32 dim, u64 bytes)
{
	u32 rows = prefetch_rows(wanted, PREFETCH_LOOKUP, fetch, dim, bytes);

	return dim * sizeof(float) <= PREFETCH_LINE_BYTES ? 2 * rows : rows;
}

/*
 * So many rows are fetched with nothing between them, so that their addresses are probably
 * translated at once: a fetch that waits for its translation seems to hold up what is behind it,
 * and where the additions of a row stand between any two, few are under way. Powers of 2.
 */
#define LOOKUP_BURST 128u
#define BURST_MOST_DIM 128u /* 64 KiB of rows */

/*
 * Rows of updates ascend, so that most of their translations are at hand: fetches follow each other
 * fast, and the processor drops those that it has no room for. A dropped fetch is had by asking
 * again, UPDATE_STEP turns later. Translations that are not at hand are read from memory, a line of
 * them for every few pages, and hold up all that is behind them: those of UPDATE_TOUCH rows are
 * asked for at once, by the first line of each, before any of these rows is fetched.
 */
#define UPDATE_TOUCH 512u
#define UPDATE_STEP 8u
#define UPDATE_TOUCH_AHEAD (4 * UPDATE_STEP) /* rows are fetched 3 ahead at most */
#define AGAIN_MOST_DIM 128u
#define AGAIN_MOST_SLOTS 3u
#define AGAIN_LEAST_DIM 64u /* slots or none */
#define AGAIN_LEAST_FLOATS 128u /* floats of a shorter row and its slots */
#define AGAIN_THRICE_FLOATS 256u /* rows, slots and gradients of fewer are fetched a third time */

/**
 * lookup_fetch() - where the rows of a feature go that are fetched ahead
 * @wanted: enum kernel_fetch, by who knows the machine
 * @dim: floats of a row
 *
 * Lines of a row that are asked for at once seem to have its address translated once each, and
 * processors translate few at a time. The first line, asked for alone, leaves its translation to
 * the others. Rows of one line have no others, and bursts of rows of more than 8 would fill the
 * second cache.
 *
 * Return: @wanted, or KERNEL_FETCH_SECOND instead of touches or of bursts.
 */
static inline u32 lookup_fetch(u32 wanted, u32 dim)
{
	if (wanted == KERNEL_FETCH_TOUCH && dim * sizeof(float) <= PREFETCH_LINE_BYTES)
		return KERNEL_FETCH_SECOND;
	if (wanted == KERNEL_FETCH_BURST && dim > BURST_MOST_DIM)
		return KERNEL_FETCH_SECOND;
	return wanted;
}

/**
 * update_fetch() - how an update fetches rows and slots ahead
 * @wanted: enum kernel_fetch, as lookup_fetch() takes it
 * @dim: floats of a row
 * @slot_count: the optimizer's
 *
 * Return: KERNEL_FETCH_AGAIN where bursts are wanted, what is under way leaves room in the second
 * cache and rows are of 4 lines or more, or of 8 with their slots (rows of 2 with a slot of 2
 * take longer by it); else KERNEL_FETCH_SECOND: the other ways are lookups' alone.
 */
static inline u32 update_fetch(u32 wanted, u32 dim, u32 slot_count)
{
	if (wanted == KERNEL_FETCH_BURST && dim <= AGAIN_MOST_DIM &&
	    slot_count <= AGAIN_MOST_SLOTS &&
	    (dim >= AGAIN_LEAST_DIM || (1 + slot_count) * dim >= AGAIN_LEAST_FLOATS))
		return KERNEL_FETCH_AGAIN;
	return KERNEL_FETCH_SECOND;
}

/* How often KERNEL_FETCH_AGAIN asks for a row: more lines than that would be under way too long. */
static inline u32 update_times(u32 dim, u32 slot_count)
{
	return (2 + slot_count) * dim < AGAIN_THRICE_FLOATS ? 3 : 2;
}

#endif
