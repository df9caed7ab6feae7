/* SPDX-License-Identifier: MIT */
/*
 * The same sort as in row_sort.c in two passes over items of 32 bits, half of what is moved
 * otherwise. The place of an item tells the digit by which it was sorted last, so an item need only
 * hold the other digit, on top, and the number of the occurrence.
 *
 * The memory is that of the struct partition. No lock is needed: each core works on its slice.
 */
#include "row_sort_pass.h"

enum short_stage { SHORT_COUNT, SHORT_COUNT_BOTH, SHORT_PLACE };

bool short_fits(const struct sorter *s, u32 passes, u64 below)
{
	return passes == 2 && !s->wide && s->pass.count >= SLICE_ITEMS && below &&
	       below <= 1ull << (32 - s->pass.bits);
}

/* Bits of a number, out of a loop: compilers read them anew after each item that is written. */
INLINE u32 number_bits(const struct pass *pass)
{
	return 32 - pass->bits;
}

INLINE u32 digit_of_item(u32 item, const u32 low)
{
	return item >> low;
}

INLINE u32 number_of_item(u32 item, const u32 low)
{
	return item & ((1u << low) - 1);
}

INLINE u32 item_of(u32 digit, u32 number, const u32 low)
{
	return digit << low | number;
}

/* Counts or cursors of the first pass, those of the second behind them. */
static u32 *starts_of(const struct pass *pass, u32 number)
{
	return pass->p->histograms + ((u64)number * pass->slices << pass->bits);
}

/* Where the items of a digit end, once a pass has scattered all. */
static const u32 *ends_of(const struct pass *pass, u32 number)
{
	return starts_of(pass, number) + ((pass->slices - 1) << pass->bits);
}

/* The digit whose items the i-th is among. */
static u64 bin_of(const struct pass *pass, const u32 *ends, u64 i)
{
	u64 low = 0, high = (1ull << pass->bits) - 1;

	while (low < high) {
		u64 middle = low + (high - low) / 2;

		if (ends[middle] <= i)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

INLINE void take_range(const struct pass *pass, const struct partition_source *source, u64 first,
		       u64 last, u32 *starts, const enum short_stage stage, const bool narrow,
		       const bool bags, const bool ahead)
{
	const u32 bits = pass->bits, mask = (1u << bits) - 1, low = number_bits(pass);
	struct numbering numbers = source_numbering(source, first - source->first, bags);
	u32 *to = (u32 *)pass->to;

	for (u64 i = first - source->first; i < last - source->first; i++) {
		u32 row = (u32)source_row(pass, source, i, narrow);

		if (ahead)
			__builtin_prefetch(
				to + starts[source_row(pass, source, i + PLACE_AHEAD, narrow) &
					    mask],
				1);
		if (stage == SHORT_PLACE)
			to[starts[row & mask]++] = item_of(
				row >> bits, (u32)numbering_of(&numbers, i, bags), low);
		else
			starts[row & mask]++;
		if (stage == SHORT_COUNT_BOTH)
			starts[(1u << bits) + (row >> bits)]++;
	}
}

INLINE void take_both(const struct pass *pass, const struct partition_source *source, u64 first,
		      u64 last, u32 *starts, const enum short_stage stage, const bool narrow,
		      const bool bags)
{
	u64 end = first;

	if (stage == SHORT_PLACE) {
		end = place_ahead_end(first, last, source->first + source->count);
		take_range(pass, source, first, end, starts, stage, narrow, bags, true);
	}
	if (end < last)
		take_range(pass, source, end, last, starts, stage, narrow, bags, false);
}

INLINE void take_some(const struct pass *pass, const struct partition_source *source, u64 first,
		      u64 last, u32 *starts, const enum short_stage stage)
{
	const bool bags = stage == SHORT_PLACE && source->bag;

	if (source->narrow && bags)
		take_both(pass, source, first, last, starts, stage, true, true);
	else if (source->narrow)
		take_both(pass, source, first, last, starts, stage, true, false);
	else if (bags)
		take_both(pass, source, first, last, starts, stage, false, true);
	else
		take_both(pass, source, first, last, starts, stage, false, false);
}

INLINE void take_slice(const struct pass *pass, u64 slice, const enum short_stage stage)
{
	u64 first = slice_at(pass, pass->count, slice);
	u64 last = slice_at(pass, pass->count, slice + 1);
	u32 *starts = pass->starts + (slice << pass->bits), next = 0;
	const struct partition_source *source;
	u64 end, left = PIECE_ROWS;

	while ((source = source_next(pass, &next, first, last, &end))) {
		for (u64 stop; first < end; first = stop) {
			stop = piece_part(first, end, &left);
			take_some(pass, source, first, stop, starts, stage);
			if (piece_spent(pass->command, &left))
				return;
		}
	}
}

static void clear_starts(const struct pass *pass, u64 slice, u32 passes)
{
	memset(pass->starts + (slice << pass->bits), 0, (u64)passes * sizeof(u32) << pass->bits);
}

static void count_task(void *arg, u64 slice, u32 worker)
{
	const struct pass *pass = arg;

	(void)worker;
	clear_starts(pass, slice, pass->slices > 1 ? 1 : 2);
	if (pass->slices > 1)
		take_slice(pass, slice, SHORT_COUNT);
	else
		take_slice(pass, slice, SHORT_COUNT_BOTH);
}

static void place_task(void *arg, u64 slice, u32 worker)
{
	(void)worker;
	take_slice(arg, slice, SHORT_PLACE);
}

static void count_again_task(void *arg, u64 slice, u32 worker)
{
	const struct pass *pass = arg;
	const u32 *from = (const u32 *)pass->from;
	u64 last = slice_at(pass, pass->count, slice + 1);
	u32 *counts = pass->starts + (slice << pass->bits);
	const u32 low = number_bits(pass);

	(void)worker;
	clear_starts(pass, slice, 1);
	for (u64 i = slice_at(pass, pass->count, slice); i < last;) {
		for (u64 end = piece_end(i, last); i < end; i++)
			counts[digit_of_item(from[i], low)]++;
		if (i < last && piece_over(pass->command))
			return;
	}
}

static void scatter_task(void *arg, u64 slice, u32 worker)
{
	const struct pass *pass = arg;
	const u32 *from = (const u32 *)pass->from, *ends = ends_of(pass, 0);
	u64 i = slice_at(pass, pass->count, slice), last = slice_at(pass, pass->count, slice + 1);
	u32 *to = (u32 *)pass->to, *starts = pass->starts + (slice << pass->bits);
	const u32 low = number_bits(pass);
	u64 left = PIECE_ROWS;

	(void)worker;
	for (u64 digit = bin_of(pass, ends, i); i < last; digit += i == ends[digit]) {
		u64 end = piece_part(i, ends[digit] < last ? ends[digit] : last, &left);

		for (; i < end; i++) {
			/* Behind the last there is as much memory again: of some item or other. */
			__builtin_prefetch(to + starts[digit_of_item(from[i + PLACE_AHEAD], low)],
					   1);
			to[starts[digit_of_item(from[i], low)]++] = item_of(
				(u32)digit, number_of_item(from[i], low), low);
		}
		if (piece_spent(pass->command, &left))
			return;
	}
}

/* The first item from @i on that does not belong to the group of the one before. */
static u64 group_end(const struct pass *pass, u64 i, u64 last)
{
	const u32 *from = (const u32 *)pass->from, *ends = ends_of(pass, 1);
	u64 digit = bin_of(pass, ends, i), end = ends[digit] < last ? ends[digit] : last;
	const u32 low = number_bits(pass);
	u64 left = PIECE_ROWS;

	if (i == (digit ? ends[digit - 1] : 0))
		return i;
	for (u32 before = digit_of_item(from[i - 1], low); i < end; i++)
		if (digit_of_item(from[i], low) != before || piece_step(pass->command, &left))
			return i;
	return i;
}

static void count_groups_task(void *arg, u64 slice, u32 worker)
{
	const struct pass *pass = arg;
	const u32 *from = (const u32 *)pass->from, *ends = ends_of(pass, 1);
	u64 last = slice_at(pass, pass->count, slice + 1), groups = 0;
	u64 i = group_end(pass, slice_at(pass, pass->count, slice), last), left = PIECE_ROWS;
	const u32 low = number_bits(pass);
	u32 before = ~0u;

	(void)worker;
	for (u64 digit = bin_of(pass, ends, i); i < last;) {
		u64 end = piece_part(i, ends[digit] < last ? ends[digit] : last, &left);

		for (; i < end; i++) {
			groups += digit_of_item(from[i], low) != before;
			before = digit_of_item(from[i], low);
		}
		if (piece_spent(pass->command, &left))
			return;
		if (i < ends[digit])
			continue;
		before = ~0u;
		digit++;
	}
	pass->starts[slice] = (u32)groups;
}

/*
 * Whether a row is a new one is a coin toss in skewed batches: nothing branches on it. Where groups
 * begin is noted in the items of the first pass, which nobody needs any more, each bin in its place.
 * @left: as for piece_step().
 */
static struct kernel_group *write_bin(const struct pass *pass, u64 row, u64 i, u64 end,
				      struct kernel_group *group, u64 *left)
{
	const u32 *from = (const u32 *)pass->from;
	u32 *order = pass->p->order, *begins = (u32 *)pass->to + i, before = ~0u;
	const u32 low = number_bits(pass);
	u64 count = 0;

	while (i < end) {
		for (u64 stop = piece_part(i, end, left); i < stop; i++) {
			u32 item = from[i], digit = digit_of_item(item, low);

			begins[count] = (u32)i;
			count += digit != before;
			before = digit;
			order[i] = number_of_item(item, low);
		}
		if (piece_spent(pass->command, left))
			return group;
	}
	/* A bin has no more rows than a digit has values. */
	for (u64 k = 0; k < count; k++) {
		u32 first = begins[k], next = k + 1 < count ? begins[k + 1] : (u32)end;

		*group++ = (struct kernel_group){ row | digit_of_item(from[first], low), first,
						  next - first };
	}
	return group;
}

static void write_groups_task(void *arg, u64 slice, u32 worker)
{
	const struct pass *pass = arg;
	const u32 *from = (const u32 *)pass->from, *ends = ends_of(pass, 1);
	u64 first = slice_at(pass, pass->count, slice);
	u64 last = slice_at(pass, pass->count, slice + 1), i = group_end(pass, first, last);
	struct kernel_group *group = pass->p->groups + pass->starts[slice];
	u64 left = PIECE_ROWS;

	(void)worker;
	for (u64 k = first; k < i && !piece_step(pass->command, &left); k++)
		pass->p->order[k] = number_of_item(from[k], number_bits(pass));
	for (u64 digit = bin_of(pass, ends, i); i < last && !command_is_cut(pass->command);
	     digit++) {
		u64 end = ends[digit] < last ? ends[digit] : last;

		group = write_bin(pass, digit << pass->bits, i, end, group, &left);
		i = end;
	}
	pass->starts[slice] = (u32)(group - pass->p->groups);
}

bool short_sort(struct sorter *s)
{
	struct pass *pass = &s->pass;

	if (!sorter_run(s, count_task))
		return false;
	sorter_prefix(pass);
	if (!sorter_run(s, place_task))
		return false;
	pass->from = pass->to;
	pass->to = pass->p->items[1];
	pass->starts = starts_of(pass, 1);
	if (pass->slices > 1 && !sorter_run(s, count_again_task))
		return false;
	sorter_prefix(pass);
	if (!sorter_run(s, scatter_task))
		return false;
	pass->from = pass->to;
	pass->to = pass->p->items[0];
	return sorter_groups_by(s, count_groups_task, write_groups_task);
}
