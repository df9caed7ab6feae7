/* SPDX-License-Identifier: MIT */
/* The occurrences of one table in one step, by row. */
#ifndef EMBENG_ENGINE_ROW_SORT_H
#define EMBENG_ENGINE_ROW_SORT_H

#include "../types.h"

struct command;
struct kernel_group;
struct model;

/**
 * struct partition_source - rows of a stretch of occurrences
 * @rows: [count], KERNEL_ROW_ZERO is left out
 * @narrow: instead of @rows where it is not NULL; without KERNEL_ROW_ZERO
 * @first: its first occurrence among all; sources follow each other without gap
 * @count: occurrences
 * @base: number of what stands first in it, of 32 bits
 * @bag: [bags + 1], 0 first and @count last: all from @bag[b] up to @bag[b + 1] have the number
 *	@base + b; NULL: each occurrence has one of its own
 * @bags: how many
 */
struct partition_source {
	const u64 *rows;
	const u32 *narrow;
	u64 first;
	u64 count;
	u64 base;
	const u64 *bag;
	u64 bags;
};

/**
 * struct partition - the result, and memory that is kept for the next
 * @model: the owner of the memory, or NULL
 * @step: the step that it holds, 0: none
 * @table: the table that it holds
 * @below: all numbers are, set by the caller; 0: not known
 * @by_gradient: occurrences are numbered by the rows of their gradients
 * @groups: [group_count], rows ascend
 * @group_count: distinct rows
 * @order: [count] numbers of the occurrences, ascending within a row as they did in the sources
 * @count: occurrences
 * @sources: the caller's
 */
struct partition {
	struct model *model;
	u64 step;
	u32 table;
	bool by_gradient;
	u64 below;
	struct kernel_group *groups;
	u64 group_count;
	u32 *order;
	u64 count;
	void *items[2];
	u32 *histograms;
	struct partition_source *sources;
	u64 groups_bytes, order_bytes, items_bytes[2], histograms_bytes;
};

/**
 * partition_make() - sort occurrences stably by row
 * @p: @p->sources are given, ordered, below 2^32 occurrences in all
 * @sources: how many of them
 * @rows: the table's; every row is below, or KERNEL_ROW_ZERO
 * @zeros: whether there are KERNEL_ROW_ZERO
 * @command: this is its work, or NULL
 * @shared: by all of its device's cores, else by the caller alone
 * @cores: most slices to work on at once; the result never depends on it
 *
 * Return: 0, or -1 without memory or where @command is to stop; then @p holds nothing.
 */
int partition_make(struct partition *p, u32 sources, u64 rows, bool zeros, struct command *command,
		   bool shared, u32 cores);

/**
 * groups_from() - where rows go on in groups
 * @groups: [count], rows ascend
 * @from: no group before it is looked at
 * @count: elements of @groups
 * @row: a row of the table
 *
 * Searches from @from in growing leaps: most who ask do so for rows that ascend.
 *
 * Return: the first group of @row or of a later one, @count without any.
 */
u64 groups_from(const struct kernel_group *groups, u64 from, u64 count, u64 row);

/* Bytes of each part of struct partition that @count occurrences need. */
struct partition_needs {
	u64 items, order, groups, histograms;
};
struct partition_needs partition_needs(u64 count, u64 rows, u32 cores);

/* Memory for @count occurrences: partition_make() of them cannot fail then. */
int partition_reserve(struct partition *p, u64 count, u64 rows, u32 cores);
void partition_free(struct partition *p);

#endif
