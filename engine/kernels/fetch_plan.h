/* SPDX-License-Identifier: MIT */
/*
 * The plan by which kernels fetch rows before their turn: how many rows ahead, and in which form. It
 * is plain data; fetch_plan_fill() makes one for a processor, and a host may have measured a better
 * one. No result depends on it.
 */
#ifndef ENGINE_KERNELS_FETCH_PLAN_H
#define ENGINE_KERNELS_FETCH_PLAN_H

#include "../types.h"

/**
 * enum kernel_fetch - the form in which rows are fetched ahead
 * @KERNEL_FETCH_SECOND: into the second cache
 * @KERNEL_FETCH_FIRST: into the first cache; for lookups alone
 * @KERNEL_FETCH_TOUCH: into the second cache, the first line of each row twice as far ahead as the
 *	rest; for lookups alone
 * @KERNEL_FETCH_BURST: into the second cache, LOOKUP_BURST rows at once; for lookups alone
 * @KERNEL_FETCH_AGAIN: into the second cache, each row more than once; for updates alone
 */
enum kernel_fetch {
	KERNEL_FETCH_SECOND,
	KERNEL_FETCH_FIRST,
	KERNEL_FETCH_TOUCH,
	KERNEL_FETCH_BURST,
	KERNEL_FETCH_AGAIN,
};

#define FETCH_ROWS_LOOKUP 48u /* the best number, or near it, wherever it was measured */
#define FETCH_ROWS_UPDATE 32u
#define FETCH_ROWS_MOST 256u
#define FETCH_LINE_BYTES 64u

/**
 * struct fetch_way - one way to fetch rows ahead
 * @rows: how many rows ahead; 0: none is fetched
 * @form: an &enum kernel_fetch
 */
struct fetch_way {
	u32 rows;
	u32 form;
};

/** struct fetch_ways - the ways of lookups and of updates */
struct fetch_ways {
	struct fetch_way lookup;
	struct fetch_way update;
};

/**
 * struct fetch_plan - how an engine fetches rows ahead
 * @near: for models whose tables have at most @cached_bytes together
 * @far: for larger models
 * @least_bytes: a table of at most so many bytes stays in the second cache, where fetching ahead
 *	only costs
 * @cached_bytes: tables of so many bytes may mostly stay in the third cache
 * @gradient_bytes: a feature's gradients of at most so many bytes stay in the second cache while
 *	they are applied; fetching them ahead would take the place of rows
 */
struct fetch_plan {
	struct fetch_ways near;
	struct fetch_ways far;
	u64 least_bytes;
	u64 cached_bytes;
	u64 gradient_bytes;
};

enum fetch_vendor { FETCH_VENDOR_OTHER, FETCH_VENDOR_AMD, FETCH_VENDOR_INTEL };

/**
 * struct fetch_machine - the properties of a processor from which a plan is made
 * @vendor: its vendor
 * @first_bytes: size of the first data cache of one core; 0 if it is not known, as for the others
 * @second_bytes: size of the second cache of one core
 * @third_bytes: size of the third cache
 */
struct fetch_machine {
	enum fetch_vendor vendor;
	u64 first_bytes;
	u64 second_bytes;
	u64 third_bytes;
};

/** fetch_plan_fill() - fill @plan with what is best for @machine as far as that is known */
void fetch_plan_fill(struct fetch_plan *plan, const struct fetch_machine *machine);

/*
 * Longer rows than of so many floats are fetched fewer ahead, because as many would fill the second
 * cache, or the first.
 */
#define FETCH_FULL_DIM 256u
#define FETCH_FULL_FIRST_DIM 64u

/**
 * fetch_rows() - how many rows of a dim are fetched ahead
 * @way: as a plan has it
 * @dim: floats of a row
 *
 * Return: fewer than @way says where so many long rows would fill a cache.
 */
static inline u32 fetch_rows(struct fetch_way way, u32 dim)
{
	u32 full = way.form == KERNEL_FETCH_FIRST ? FETCH_FULL_FIRST_DIM : FETCH_FULL_DIM;

	return dim <= full || !way.rows ? way.rows : way.rows * full / dim + 1;
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
#define AGAIN_LEAST_DIM 64u	 /* slots or none */
#define AGAIN_LEAST_FLOATS 128u	 /* floats of a shorter row and its slots */
#define AGAIN_THRICE_FLOATS 256u /* rows, slots and gradients of fewer are fetched a third time */

/**
 * fetch_lookup() - the way in which lookups fetch the rows of a table
 * @way: the plan's for lookups
 * @dim: floats of a row
 *
 * Lines of a row that are asked for at once seem to have its address translated once each, and
 * processors translate few at a time. The first line, asked for alone, leaves its translation to
 * the others. Rows of one line have no others, and are read faster than longer ones, so that twice
 * as many are asked for. Bursts of rows of more than 8 lines would fill the second cache.
 *
 * Return: @way as it fits rows of @dim floats.
 */
static inline struct fetch_way fetch_lookup(struct fetch_way way, u32 dim)
{
	const bool one_line = dim * sizeof(float) <= FETCH_LINE_BYTES;

	if ((way.form == KERNEL_FETCH_TOUCH && one_line) ||
	    (way.form == KERNEL_FETCH_BURST && dim > BURST_MOST_DIM))
		way.form = KERNEL_FETCH_SECOND;
	way.rows = fetch_rows(way, dim);
	if (one_line)
		way.rows *= 2;
	return way;
}

/**
 * fetch_update() - the way in which updates fetch rows and slots of a table
 * @way: the plan's for updates
 * @dim: floats of a row
 * @slot_count: slots of the optimizer
 *
 * Rows are fetched again if what is under way leaves room in the second cache and rows have 4 lines
 * or more, or 8 with their slots. Rows of 2 lines with a slot of 2 take longer by it.
 *
 * Return: @way as it fits such rows; its form is KERNEL_FETCH_AGAIN or KERNEL_FETCH_SECOND.
 */
static inline struct fetch_way fetch_update(struct fetch_way way, u32 dim, u32 slot_count)
{
	const bool again = way.form == KERNEL_FETCH_AGAIN && dim <= AGAIN_MOST_DIM &&
			   slot_count <= AGAIN_MOST_SLOTS &&
			   (dim >= AGAIN_LEAST_DIM || (1 + slot_count) * dim >= AGAIN_LEAST_FLOATS);

	way.form = again ? KERNEL_FETCH_AGAIN : KERNEL_FETCH_SECOND;
	way.rows = fetch_rows(way, dim);
	return way;
}

/* How often KERNEL_FETCH_AGAIN asks for a row: more lines than that would be under way too long. */
static inline u32 update_times(u32 dim, u32 slot_count)
{
	return (2 + slot_count) * dim < AGAIN_THRICE_FLOATS ? 3 : 2;
}

#endif
