/* SPDX-License-Identifier: MIT */
/*
 * Sorts the occurrences of a table by row: a stable radix sort, least digit first, spread over
 * slices for the cores. partition_make() chooses between this sort and the one of row_sort_short.c,
 * which moves half as much and is possible if numbers are small enough.
 *
 * The memory belongs to the struct partition and is kept from one step to the next. No lock is
 * needed: a partition is used by one caller, whose cores each work on a slice.
 */
#include "row_sort_pass.h"

#define DIGIT_BITS_FEW 11u /* for few items: more bins cost more than a pass */
#define COUNTED 3u	   /* passes that collecting counts for at most */

INLINE void collect_range(const struct pass *pass, const struct partition_source *source, u64 first,
			  u64 last, u32 *counts, const bool wide, const bool narrow,
			  const bool bags, const u32 counted)
{
	const u64 mask = (1ull << pass->bits) - 1;
	struct numbering numbers = source_numbering(source, first - source->first, bags);

	for (u64 i = first; i < last; i++) {
		u64 at = i - source->first, row = source_row(pass, source, at, narrow);
		u64 number = numbering_of(&numbers, at, bags);

		if (wide) {
			pass->to[2 * i] = row;
			pass->to[2 * i + 1] = number;
		} else {
			pass->to[i] = row << ROW_SHIFT | number;
		}
		for (u32 k = 0; k < counted; k++)
			counts[(k << pass->bits) + (row >> k * pass->bits & mask)]++;
	}
}

INLINE void collect_some(const struct pass *pass, const struct partition_source *source, u64 first,
			 u64 last, u32 *counts, const bool wide, const u32 counted)
{
	if (source->narrow && source->bag)
		collect_range(pass, source, first, last, counts, wide, true, true, counted);
	else if (source->narrow)
		collect_range(pass, source, first, last, counts, wide, true, false, counted);
	else if (source->bag)
		collect_range(pass, source, first, last, counts, wide, false, true, counted);
	else
		collect_range(pass, source, first, last, counts, wide, false, false, counted);
}

INLINE void collect_counted(const struct pass *pass, u64 slice, const bool wide, const u32 counted)
{
	u64 first = slice_at(pass, pass->count, slice);
	u64 last = slice_at(pass, pass->count, slice + 1);
	u32 *counts = pass->starts + (slice << pass->bits), next = 0;
	const struct partition_source *source;
	u64 end, left = PIECE_ROWS;

	memset(counts, 0, (u64)counted * sizeof(*counts) << pass->bits);
	while ((source = source_next(pass, &next, first, last, &end))) {
		for (u64 stop; first < end; first = stop) {
			stop = piece_part(first, end, &left);
			collect_some(pass, source, first, stop, counts, wide, counted);
			if (piece_spent(pass->command, &left))
				return;
		}
	}
}

INLINE void collect_slice(const struct pass *pass, u64 slice, const bool wide)
{
	if (pass->counted < 2)
		collect_counted(pass, slice, wide, pass->counted);
	else if (pass->counted == 2)
		collect_counted(pass, slice, wide, 2);
	else
		collect_counted(pass, slice, wide, COUNTED);
}

INLINE u64 item_digit(const struct pass *pass, u64 i, const bool wide)
{
	return item_row(pass->from, i, wide) >> pass->shift & ((1ull << pass->bits) - 1);
}

INLINE void count_slice(const struct pass *pass, u64 slice, const bool wide)
{
	u64 last = slice_at(pass, pass->count, slice + 1);
	u32 *counts = pass->starts + (slice << pass->bits);

	memset(counts, 0, sizeof(*counts) << pass->bits);
	for (u64 i = slice_at(pass, pass->count, slice); i < last;) {
		for (u64 end = piece_end(i, last); i < end; i++)
			counts[item_digit(pass, i, wide)]++;
		if (i < last && piece_over(pass->command))
			return;
	}
}

INLINE void scatter_range(const struct pass *pass, u64 first, u64 last, u32 *starts,
			  const bool wide, const bool ahead)
{
	for (u64 i = first; i < last; i++) {
		u64 to = starts[item_digit(pass, i, wide)]++;

		if (ahead)
			__builtin_prefetch(pass->to + (wide ? 2 : 1) *
							      (u64)starts[item_digit(
								      pass, i + PLACE_AHEAD, wide)],
					   1);
		if (wide) {
			pass->to[2 * to] = pass->from[2 * i];
			pass->to[2 * to + 1] = pass->from[2 * i + 1];
		} else {
			pass->to[to] = pass->from[i];
		}
	}
}

INLINE void scatter_slice(const struct pass *pass, u64 slice, const bool wide)
{
	u64 first = slice_at(pass, pass->count, slice),
	    last = slice_at(pass, pass->count, slice + 1);
	u32 *starts = pass->starts + (slice << pass->bits);

	for (u64 stop, end; first < last; first = stop) {
		stop = piece_end(first, last);
		end = place_ahead_end(first, stop, pass->count);
		scatter_range(pass, first, end, starts, wide, true);
		scatter_range(pass, end, stop, starts, wide, false);
		if (stop < last && piece_over(pass->command))
			return;
	}
}

DEFINE_TASKS(collect_slice)
DEFINE_TASKS(count_slice)
DEFINE_TASKS(scatter_slice)

static u32 significant_bits(u64 value)
{
	u32 bits = 0;

	for (; value; value >>= 1)
		bits++;
	return bits;
}

static u32 passes_of(u32 bits, u64 count)
{
	u32 most = count < SLICE_ITEMS ? DIGIT_BITS_FEW : DIGIT_BITS_MAX;

	return (bits + most - 1) / most;
}

static bool collect_all(struct sorter *s, u32 passes)
{
	u32 most = s->pass.slices > 1 ? 1 : COUNTED;

	s->pass.counted = passes < most ? passes : most;
	return sorter_run(s, STAGE_OF(s, collect_slice));
}

static bool sort_passes(struct sorter *s, u32 passes)
{
	struct pass *pass = &s->pass;

	for (u32 i = 0; i < passes; i++) {
		u64 *to;

		pass->shift = i * pass->bits;
		if (i < pass->counted)
			pass->starts = pass->p->histograms + ((u64)i << pass->bits);
		else if (!sorter_run(s, STAGE_OF(s, count_slice)))
			return false;
		if (!sorter_prefix(pass))
			continue;
		if (!sorter_run(s, STAGE_OF(s, scatter_slice)))
			return false;
		to = pass->to;
		pass->to = (u64 *)pass->from;
		pass->from = to;
	}
	return true;
}

/* Those left out have the highest row of all: they stand last. */
static u64 without_zeros(const struct sorter *s)
{
	u64 low = 0, high = s->pass.count;

	while (low < high) {
		u64 middle = low + (high - low) / 2;

		if (item_row(s->pass.from, middle, s->wide) < s->pass.rows)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static u32 slices_of(u64 count, u32 cores)
{
	u64 slices = count / SLICE_ITEMS;

	return slices < 1 ? 1 : slices < cores ? (u32)slices : cores;
}

struct partition_needs partition_needs(u64 count, u64 rows, u32 cores)
{
	u64 slices = slices_of(count, cores);

	return (struct partition_needs){
		.items = count * (rows > U32_MAX ? 16 : 8),
		.order = count * sizeof(u32),
		.groups = (count < rows ? count : rows) * sizeof(struct kernel_group),
		.histograms = (slices > 1 ? 2 * slices : COUNTED) * sizeof(u32) << DIGIT_BITS_MAX,
	};
}

int partition_reserve(struct partition *p, u64 count, u64 rows, u32 cores)
{
	struct partition_needs need = partition_needs(count, rows, cores);

	/* Growing a buffer loses the sorted step that it holds. */
	if (grow_to(p->groups_bytes, need.groups) != p->groups_bytes ||
	    grow_to(p->order_bytes, need.order) != p->order_bytes)
		p->step = 0;
	if (grow(p->model, &p->items[0], &p->items_bytes[0], need.items) ||
	    grow(p->model, &p->items[1], &p->items_bytes[1], need.items) ||
	    grow(p->model, (void **)&p->order, &p->order_bytes, need.order) ||
	    grow(p->model, (void **)&p->groups, &p->groups_bytes, need.groups) ||
	    grow(p->model, (void **)&p->histograms, &p->histograms_bytes, need.histograms))
		return -1;
	return 0;
}

int partition_make(struct partition *p, u32 sources, u64 rows, bool zeros, struct command *command,
		   bool shared, u32 cores)
{
	u64 count = sources ? p->sources[sources - 1].first + p->sources[sources - 1].count : 0;
	u32 bits = significant_bits(zeros ? rows : rows - 1), passes = passes_of(bits, count);
	struct sorter s = { .shared = shared, .wide = rows > U32_MAX };

	p->step = 0;
	if (partition_reserve(p, count, rows, cores))
		return -1;
	s.pass = (struct pass){
		.command = command, .p = p, .count = count, .rows = rows, .sources = sources
	};
	s.pass.slices = slices_of(count, cores);
	s.pass.bits = passes ? (bits + passes - 1) / passes : 0;
	s.pass.starts = p->histograms;
	s.pass.to = p->items[0];
	if (!zeros && short_fits(&s, passes, p->below)) {
		p->count = count;
		return short_sort(&s) ? 0 : -1;
	}
	if (!collect_all(&s, passes))
		return -1;
	s.pass.from = p->items[0];
	s.pass.to = p->items[1];
	if (!sort_passes(&s, passes))
		return -1;
	p->count = zeros ? without_zeros(&s) : count;
	return sorter_make_groups(&s) ? 0 : -1;
}

void partition_free(struct partition *p)
{
	port_free(p->groups);
	port_free(p->order);
	port_free(p->items[0]);
	port_free(p->items[1]);
	port_free(p->histograms);
	memset(p, 0, sizeof(*p));
}
