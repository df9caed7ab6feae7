/* SPDX-License-Identifier: MIT */
/* Baskets of items, which are collected from files as text, then numbered and filtered. */
#ifndef ITEM2VEC_DATASET_H
#define ITEM2VEC_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

/* An item in a basket, as it was read. */
struct use {
	uint32_t basket, item;
	int64_t time;
	uint64_t order;
};

/**
 * struct collector - baskets and items while files are read
 * @baskets: names of the baskets: users, source packages or lines
 * @items: names of the items
 * @uses: [use_count] items in baskets, with repetitions
 * @timed: every use so far had a time
 */
struct collector {
	struct names baskets, items;
	struct use *uses;
	size_t use_count, use_capacity;
	bool timed;
};

/* A part of a line. */
struct piece {
	const char *text;
	size_t length;
};

/* Puts an item into a basket. @time is NULL if it is not known. Return: 0 or -ENOMEM. */
int collector_add(struct collector *c, struct piece basket, struct piece item, const int64_t *time);

void collector_free(struct collector *c);

/**
 * struct dataset - baskets that are ready to learn from
 * @items: names of the items that are frequent enough
 * @uses: [items.count] number of baskets that hold the item
 * @basket_count: number of baskets that are large enough
 * @start: [basket_count + 1] index of each basket's first item in @item
 * @item: [start[basket_count]] items, the oldest first within each basket
 * @sorted: [start[basket_count]] items, rising within each basket
 * @timed: items in baskets are in the order of their times
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
 * dataset_build() - make a data set from collected baskets
 * @c: collected baskets; its uses are sorted in place
 * @min_count: items in fewer baskets are left out
 * @min_basket: after that, baskets with fewer items are left out
 *
 * An item counts once in a basket, at its newest time. Return: 0 or -ENOMEM. There may be no
 * basket left.
 */
int dataset_build(struct dataset *data, struct collector *c, size_t min_count, size_t min_basket);

/*
 * Makes a data set whose first items are known ones, in their order, be they in a basket or not; new
 * items follow. Otherwise as dataset_build().
 */
int dataset_build_on(struct dataset *data, char *const *known, size_t known_count,
		     struct collector *c, size_t min_count, size_t min_basket);

bool dataset_basket_has(const struct dataset *data, size_t basket, uint32_t item);

/* A hash that is equal on all machines for equal items in equal baskets in the same order. */
uint64_t dataset_hash(const struct dataset *data);

void dataset_free(struct dataset *data);

#endif
