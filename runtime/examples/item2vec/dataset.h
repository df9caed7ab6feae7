/* SPDX-License-Identifier: MIT */
/* Baskets of items: collected from files as text, then numbered and filtered. */
#ifndef ITEM2VEC_DATASET_H
#define ITEM2VEC_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

/* One item in one basket, as it was read. */
struct use {
	uint32_t basket, item;
	int64_t time;
	uint64_t order;
};

/**
 * struct collector - what the readers of data_*.c fill
 * @baskets: users, source packages, lines
 * @items: what is in them
 * @uses: [use_count], repetitions included
 * @timed: every use so far had a time of its own
 */
struct collector {
	struct names baskets, items;
	struct use *uses;
	size_t use_count, use_capacity;
	bool timed;
};

/* A text within a line. */
struct piece {
	const char *text;
	size_t length;
};

/* Puts an item into a basket; @time NULL: unknown. 0 or -ENOMEM. */
int collector_add(struct collector *c, struct piece basket, struct piece item, const int64_t *time);

void collector_free(struct collector *c);

/**
 * struct dataset - baskets ready to learn from
 * @items: names of the items that are frequent enough
 * @uses: [items.count] baskets that hold the item
 * @basket_count: baskets that are large enough
 * @start: [basket_count + 1] where a basket's items begin
 * @item: [start[basket_count]] oldest first within a basket
 * @sorted: the same, rising within a basket
 * @timed: the order within baskets is that of times
 */
struct dataset {
	struct names items;
	uint32_t *uses;
	size_t basket_count;
	size_t *start;
	uint32_t *item, *sorted;
	bool timed;
};

/**
 * dataset_build() - number what was collected
 * @c: its uses are sorted in place
 * @min_count: items in fewer baskets are left out
 * @min_basket: then baskets of fewer items are left out
 *
 * An item counts once per basket, at its newest time. Return: 0 or -ENOMEM; no
 * basket may be left.
 */
int dataset_build(struct dataset *data, struct collector *c, size_t min_count, size_t min_basket);

bool dataset_basket_has(const struct dataset *data, size_t basket, uint32_t item);

/* Equal for the same items in the same baskets in the same order, on any machine. */
uint64_t dataset_hash(const struct dataset *data);

void dataset_free(struct dataset *data);

#endif
