/* SPDX-License-Identifier: MIT */
/*
 * Keeps the most frequent rows of a table in bounded memory (see hot_rows.h for the algorithm and
 * its error). It counts a whole step at a time, from rows that were sorted for the update anyway.
 *
 * The rows belong to the table's statistics. No lock is needed: one thread counts for a table.
 */
#include "hot_rows.h"
#include "../kernels/kernels.h"
#include "row_sort.h"
#include "../device/device.h"

#define HOT_HISTOGRAM 256u /* counts from here on share a bin */
#define HOT_ONCE 8u	   /* bins of counts of 1 */

/* Most frequent first, ties by row. */
static bool is_hotter(const struct embeng_hot_row *a, const struct embeng_hot_row *b)
{
	return a->count != b->count ? a->count > b->count : a->row < b->row;
}

static u32 bin_of_count(u64 count)
{
	return count < HOT_HISTOGRAM ? (u32)count : HOT_HISTOGRAM - 1;
}

/*
 * The count of the HOT_ROWS + 1st group, or the last bin. @ties: how many
 * groups of that count are among these. Most rows come once, and one bin for
 * all of them would make each addition wait for the one before: they are
 * spread over bins that nobody reads. Whether one does is a coin toss:
 * nothing branches on it.
 */
static u32 find_threshold(const struct kernel_group *groups, u64 count, u64 *ties,
			  struct command *command)
{
	/* groups are fewer than occurrences, which are u32 */
	u32 histogram[HOT_HISTOGRAM + HOT_ONCE] = { 0 };
	u64 above = 0;
	u32 b = HOT_HISTOGRAM - 1;

	for (u64 i = 0, end; i < count && !command_is_cut(command); piece_over(command)) {
		for (end = piece_end(i, count); i < end; i++) {
			u32 once = groups[i].count == 1;

			histogram[bin_of_count(groups[i].count) +
				  once * (HOT_HISTOGRAM - 1 + i % HOT_ONCE)]++;
		}
	}
	while (b > 1 && above + histogram[b] <= HOT_ROWS)
		above += histogram[b--];
	*ties = HOT_ROWS + 1 - above;
	return b;
}

/* Adds what the step gave to the rows that are known already. Both ascend. */
static void add_known(struct hot *hot, const struct kernel_group *groups, u64 count)
{
	u64 at = 0;

	for (u32 i = 0; i < hot->count; i++) {
		at = groups_from(groups, at, count, hot->rows[i].row);
		if (at < count && groups[at].row == hot->rows[i].row)
			hot->rows[i].count += groups[at].count;
	}
}

/* How many rows have each value of a digit, of those whose count is @prefix above it. */
static void count_hot_digits(const struct hot *hot, u64 prefix, u32 shift, u32 histogram[256])
{
	memset(histogram, 0, 256 * sizeof(*histogram));
	for (u32 i = 0; i < hot->count; i++) {
		u64 digits = hot->rows[i].count >> shift;

		histogram[digits & 255] += digits >> 8 == prefix;
	}
}

/* The count of the HOT_ROWS + 1st row, by digits of 8 bits, the highest that any has first. */
static u64 excess_of(const struct hot *hot)
{
	u32 histogram[256], left = HOT_ROWS, shift = 0;
	u64 all = 0, prefix = 0;

	for (u32 i = 0; i < hot->count; i++)
		all |= hot->rows[i].count;
	while (shift < 56 && all >> shift >> 8)
		shift += 8;
	for (;; shift -= 8) {
		u32 digit = 255;

		count_hot_digits(hot, prefix, shift, histogram);
		for (; histogram[digit] <= left; digit--)
			left -= histogram[digit];
		prefix = prefix << 8 | digit;
		if (!shift)
			return prefix;
	}
}

/* Takes the excess from rows [@from, @to), and puts those with more behind @kept others. */
static u32 keep_rows(struct hot *hot, u32 from, u32 to, u32 kept, u64 excess)
{
	for (; from < to; from++) {
		struct embeng_hot_row row = hot->rows[from];

		hot->rows[kept] = (struct embeng_hot_row){ row.row, row.count - excess };
		kept += row.count > excess;
	}
	return kept;
}

/* Rows [0, @sorted) ascend, and those from there on do; at most HOT_ROWS in all. */
static void merge_rows(struct hot *hot, u32 sorted)
{
	u32 added = hot->count - sorted, to = hot->count;
	struct embeng_hot_row *rows = hot->rows, *behind = rows + HOT_ROWS;

	memcpy(behind, rows + sorted, added * sizeof(*rows));
	while (added) {
		bool from_behind = !sorted || rows[sorted - 1].row < behind[added - 1].row;

		rows[--to] = from_behind ? behind[added - 1] : rows[sorted - 1];
		added -= from_behind;
		sorted -= !from_behind;
	}
}

/*
 * Takes the excess over HOT_ROWS from everyone, so that the rare fall out. Rows [0, @sorted) ascend,
 * and those that were added behind them do.
 */
static void reduce_rows(struct hot *hot, u32 sorted)
{
	if (hot->count > HOT_ROWS) {
		u64 excess = excess_of(hot);
		u32 kept = keep_rows(hot, 0, sorted, 0, excess);

		hot->count = keep_rows(hot, sorted, hot->count, kept, excess);
		hot->error += excess;
		sorted = kept;
	}
	merge_rows(hot, sorted);
}

/* Rows that a step adds, behind [0, @sorted); its groups ascend, and so does @at among these. */
struct taking {
	struct hot *hot;
	u32 sorted, at;
};

static void take_group(struct taking *t, const struct kernel_group *group)
{
	struct embeng_hot_row *rows = t->hot->rows;

	while (t->at < t->sorted && rows[t->at].row < group->row)
		t->at++;
	if (t->at == t->sorted || rows[t->at].row != group->row)
		rows[t->hot->count++] = (struct embeng_hot_row){ group->row, group->count };
}

static struct taking begin_taking(struct hot *hot)
{
	return (struct taking){ .hot = hot, .sorted = hot->count };
}

/*
 * More than HOT_ROWS rows share the last bin: they go in by blocks, each large
 * enough that its excess covers all rows of lower bins.
 */
static void add_blocks(struct hot *hot, const struct kernel_group *groups, u64 count,
		       struct command *command)
{
	struct taking taking = begin_taking(hot);
	u64 left = PIECE_ROWS;
	u32 taken = 0;

	for (u64 i = 0; i < count && !piece_step(command, &left); i++) {
		if (bin_of_count(groups[i].count) < HOT_HISTOGRAM - 1)
			continue;
		take_group(&taking, &groups[i]);
		if (++taken <= HOT_ROWS)
			continue;
		reduce_rows(hot, taking.sorted);
		taking = begin_taking(hot);
		taken = 0;
	}
	reduce_rows(hot, taking.sorted);
}

/* Groups of more than @limit, and the first @ties of so many. */
static void add_some(struct hot *hot, const struct kernel_group *groups, u64 count, u32 limit,
		     u64 ties, struct command *command)
{
	struct taking taking = begin_taking(hot);
	u64 left = PIECE_ROWS;

	for (u64 i = 0; i < count && !piece_step(command, &left); i++) {
		if (groups[i].count < limit || (groups[i].count == limit && !ties))
			continue;
		ties -= groups[i].count == limit;
		take_group(&taking, &groups[i]);
	}
	reduce_rows(hot, taking.sorted);
}

/*
 * Only the HOT_ROWS + 1 first rows of a step are looked at: the excess is then
 * the same as with all of them, and no row that was left out had more.
 */
void hot_add(struct hot *hot, const struct kernel_group *groups, u64 count, struct command *command)
{
	u64 ties;
	u32 limit = find_threshold(groups, count, &ties, command);

	/* Then it is no threshold. */
	if (command_is_cut(command))
		return;
	add_known(hot, groups, count);
	if (limit == HOT_HISTOGRAM - 1)
		add_blocks(hot, groups, count, command);
	else
		add_some(hot, groups, count, limit, ties, command);
}

u32 hot_top(const struct hot *hot, struct embeng_hot_row *out, u32 most)
{
	u32 count = 0;

	for (u32 i = 0; i < hot->count; i++) {
		struct embeng_hot_row row = hot->rows[i];
		u32 at = count;

		if (count == most && !is_hotter(&row, &out[most - 1]))
			continue;
		if (count < most)
			count++;
		else
			at--;
		for (; at && is_hotter(&row, &out[at - 1]); at--)
			out[at] = out[at - 1];
		out[at] = row;
	}
	return count;
}

void hot_clear(struct hot *hot)
{
	hot->count = 0;
	hot->error = 0;
}
