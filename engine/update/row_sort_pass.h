/* SPDX-License-Identifier: MIT */
/* The parts that the stages of a partition share: items, slices and how they are run. */
#ifndef EMBENG_ENGINE_ROW_SORT_PASS_H
#define EMBENG_ENGINE_ROW_SORT_PASS_H

#include "../model/model.h"

#define ROW_SHIFT 32u	   /* in an item of one word: row above, occurrence below */
#define DIGIT_BITS_MAX 12u /* bits of a digit that a pass sorts by */
#define SLICE_ITEMS 32768u /* below that another slice costs more than it gains */

/*
 * Items between one that is put in its place and the one whose place is fetched. Stores wait for
 * their lines one after another, so that without it scattering takes twice as long.
 */
#define PLACE_AHEAD 64u

/*
 * Items are one word (row, occurrence) while rows fit 32 bits, else two. Each slice of a pass
 * has its own counts, so that slices can be scattered at once and the order is still that of one
 * slice. Collecting counts for the first pass, and for more when one slice holds all.
 */
struct pass {
	struct command *command; /* or NULL */
	struct partition *p;
	const u64 *from;
	u64 *to;
	u32 *starts; /* those of slice s: [s << bits] */
	u64 count;   /* items, those left out too */
	u64 rows;
	u32 sources, slices, shift, bits;
	u32 counted; /* passes */
};

/* The items of [@first, @last) before this one have another item PLACE_AHEAD behind them. */
static inline u64 place_ahead_end(u64 first, u64 last, u64 count)
{
	u64 end = count > PLACE_AHEAD ? count - PLACE_AHEAD : 0;

	return end < first ? first : end < last ? end : last;
}

/* The next source that has items from @first to @last, and where these end; NULL: none. */
INLINE const struct partition_source *source_next(const struct pass *pass, u32 *s, u64 first,
						  u64 last, u64 *end)
{
	while (*s < pass->sources && first < last) {
		const struct partition_source *source = &pass->p->sources[(*s)++];

		*end = source->first + source->count;
		if (*end <= first)
			continue;
		if (*end > last)
			*end = last;
		return source;
	}
	return NULL;
}

INLINE u64 source_row(const struct pass *pass, const struct partition_source *source, u64 i,
		      const bool narrow)
{
	u64 row;

	if (narrow)
		return source->narrow[i];
	row = source->rows[i];
	return row == KERNEL_ROW_ZERO ? pass->rows : row;
}

/**
 * struct numbering - numbers of a source's occurrences, as these ascend
 * @next: where in the bags the one ends that has @number
 * @end: that
 * @number: the bag's, without bags the first occurrence's
 */
struct numbering {
	const u64 *next;
	u64 end, number;
};

/* From occurrence @i on: in the last bag that begins at it or before. */
INLINE struct numbering source_numbering(const struct partition_source *source, u64 i,
					 const bool bags)
{
	u64 low = 0, high = source->bags;

	if (!bags)
		return (struct numbering){ .number = source->base };
	while (high - low > 1) {
		u64 middle = low + (high - low) / 2;

		if (source->bag[middle] <= i)
			low = middle;
		else
			high = middle;
	}
	return (struct numbering){ source->bag + low + 1, source->bag[low + 1],
				   source->base + low };
}

INLINE u64 numbering_of(struct numbering *n, u64 i, const bool bags)
{
	if (!bags)
		return n->number + i;
	for (; i >= n->end; n->number++)
		n->end = *++n->next;
	return n->number;
}

INLINE u64 item_row(const u64 *items, u64 i, const bool wide)
{
	return wide ? items[2 * i] : items[i] >> ROW_SHIFT;
}

INLINE u32 item_occurrence(const u64 *items, u64 i, const bool wide)
{
	return (u32)items[wide ? 2 * i + 1 : i];
}

static inline u64 slice_at(const struct pass *pass, u64 count, u64 slice)
{
	return count / pass->slices * slice + count % pass->slices * slice / pass->slices;
}

/* Both widths of a stage as tasks. */
#define DEFINE_TASKS(STAGE) \
	static void STAGE##_narrow(void *arg, u64 slice, u32 worker) \
	{ \
		(void)worker; \
		STAGE(arg, slice, false); \
	} \
	static void STAGE##_wide(void *arg, u64 slice, u32 worker) \
	{ \
		(void)worker; \
		STAGE(arg, slice, true); \
	}

/* @shared: its slices are, by all cores; @wide: items of two words instead of one */
struct sorter {
	struct pass pass;
	bool shared, wide;
};

/* sorter.c: a stage over all slices, by whoever is free. Return: as workers_run(). */
typedef void (*stage_fn)(void *pass, u64 slice, u32 worker);
bool sorter_run(struct sorter *s, stage_fn stage);

#define STAGE_OF(s, STAGE) ((s)->wide ? STAGE##_wide : STAGE##_narrow)

/* Counts become places. Return: false when the pass would move nothing. */
bool sorter_prefix(const struct pass *pass);

/* row_groups.c: the sorted items become groups and their order. Return: as workers_run(). */
bool sorter_make_groups(struct sorter *s);

/* Makes groups: @count counts those that begin in a slice, @write writes them and their ends. */
bool sorter_groups_by(struct sorter *s, stage_fn count, stage_fn write);

/*
 * row_sort_short.c: all of the above by items of 32 bits. @below: all numbers are, 0: not known.
 * The histograms have room for two passes of each slice.
 */
bool short_fits(const struct sorter *s, u32 passes, u64 below);
bool short_sort(struct sorter *s);

#endif
