/* SPDX-License-Identifier: MIT */
/* What the stages of a partition share: items, slices and how they are run. */
#ifndef EMBENG_ENGINE_PARTITION_PASS_H
#define EMBENG_ENGINE_PARTITION_PASS_H

#include "model.h"

#define ROW_SHIFT 32u /* of an item of one word: row above, occurrence below */

/*
 * Items are one word (row, occurrence) while rows fit 32 bits, else two. Each slice of a pass
 * has its own counts, so that slices can be scattered at once and the order is still that of one
 * slice. Collecting counts for the first pass, and for more when one slice holds all.
 */
struct pass {
	struct partition *p;
	const u64 *from;
	u64 *to;
	u32 *starts; /* of slice s: [s << bits] */
	u64 count;   /* items, those left out too */
	u64 rows;
	u32 sources, slices, shift, bits;
	u32 counted; /* passes */
};

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

/* @wide: which kind of items there are */
struct sorter {
	struct pass pass;
	struct workers *workers;
	bool wide;
};

/* A stage over all slices, by whoever is free. */
void sorter_run(struct sorter *s, void (*narrow)(void *, u64, u32),
		void (*wide)(void *, u64, u32));

/* partition_groups.c: the sorted items become groups and their order. */
void sorter_make_groups(struct sorter *s);

#endif
