/* SPDX-License-Identifier: MIT */
/*
 * Makes groups of one row each from sorted items, and writes down the order of their occurrences.
 * Both sorts end here, so it is apart from either of them.
 *
 * The groups and the order belong to the struct partition. Several cores work at the same time,
 * each on its slice; no lock is needed.
 */
#include "row_sort_pass.h"

INLINE bool begins_group(const struct pass *pass, u64 i, const bool wide)
{
	return !i || item_row(pass->from, i, wide) != item_row(pass->from, i - 1, wide);
}

/* How many groups begin in a slice. */
INLINE void count_groups(const struct pass *pass, u64 slice, const bool wide)
{
	u64 last = slice_at(pass, pass->p->count, slice + 1), groups = 0;

	for (u64 i = slice_at(pass, pass->p->count, slice); i < last;) {
		for (u64 end = piece_end(i, last); i < end; i++)
			groups += begins_group(pass, i, wide);
		if (i < last && piece_over(pass->command))
			return;
	}
	pass->starts[slice] = (u32)groups;
}

/* Occurrences that continue a group of the slice before are counted there later. */
INLINE u64 skip_group(const struct pass *pass, u64 i, u64 last, const bool wide)
{
	u64 left = PIECE_ROWS;

	for (; i < last && !begins_group(pass, i, wide); i++) {
		pass->p->order[i] = item_occurrence(pass->from, i, wide);
		if (piece_step(pass->command, &left))
			return last;
	}
	return i;
}

/*
 * The groups that begin in a slice, and the order. Whether a row is a new one is a coin toss
 * in skewed batches: nothing branches on it. starts[slice] becomes where its groups end.
 */
INLINE void write_groups(const struct pass *pass, u64 slice, const bool wide)
{
	u64 last = slice_at(pass, pass->p->count, slice + 1);
	u64 i = skip_group(pass, slice_at(pass, pass->p->count, slice), last, wide);
	struct kernel_group *group = pass->p->groups + pass->starts[slice] - 1;
	u64 before = ~(u64)0, first = i;
	u32 *order = pass->p->order;

	while (i < last) {
		for (u64 end = piece_end(i, last); i < end; i++) {
			u64 row = item_row(pass->from, i, wide);
			bool fresh = row != before;

			group += fresh;
			first = fresh ? i : first;
			before = row;
			*group = (struct kernel_group){ row, (u32)first, (u32)(i + 1 - first) };
			order[i] = item_occurrence(pass->from, i, wide);
		}
		if (i < last && piece_over(pass->command))
			return;
	}
	pass->starts[slice] = (u32)(group + 1 - pass->p->groups);
}

DEFINE_TASKS(count_groups)
DEFINE_TASKS(write_groups)

static bool place_groups(struct sorter *s, stage_fn count)
{
	u32 *starts = s->pass.starts, groups = 0;

	if (!sorter_run(s, count))
		return false;
	for (u64 slice = 0; slice < s->pass.slices; slice++) {
		u32 begun = starts[slice];

		starts[slice] = groups;
		groups += begun;
	}
	return true;
}

/* The last group of each slice ends where the next one begins. */
static void end_groups(const struct pass *pass)
{
	const struct partition *p = pass->p;

	for (u64 slice = 0; slice + 1 < pass->slices; slice++) {
		u64 next = pass->starts[slice];
		u64 end = next < p->group_count ? p->groups[next].first : p->count;

		if (next)
			p->groups[next - 1].count = (u32)(end - p->groups[next - 1].first);
	}
}

u64 groups_from(const struct kernel_group *groups, u64 from, u64 count, u64 row)
{
	u64 low = from, high, leap = 1;

	for (; low < count && groups[low].row < row; leap *= 2) {
		from = low + 1;
		low += leap;
	}
	high = low < count ? low : count;
	while (from < high) {
		u64 middle = from + (high - from) / 2;

		if (groups[middle].row < row)
			from = middle + 1;
		else
			high = middle;
	}
	return from;
}

bool sorter_groups_by(struct sorter *s, stage_fn count, stage_fn write)
{
	struct pass *pass = &s->pass;

	pass->starts = pass->p->histograms;
	pass->starts[0] = 0;
	if (pass->slices > 1 && !place_groups(s, count))
		return false;
	if (!sorter_run(s, write))
		return false;
	pass->p->group_count = pass->starts[pass->slices - 1];
	end_groups(pass);
	return true;
}

bool sorter_make_groups(struct sorter *s)
{
	return sorter_groups_by(s, STAGE_OF(s, count_groups), STAGE_OF(s, write_groups));
}
