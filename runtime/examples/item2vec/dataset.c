// SPDX-License-Identifier: MIT
/*
 * Collects uses of items from files, and makes numbered baskets of them: repetitions, rare items
 * and small baskets are left out.
 *
 * A collector owns texts until collector_free(); a dataset owns its numbers until dataset_free().
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "hash.h"

int collector_add(struct collector *c, struct piece basket, struct piece item, const int64_t *time)
{
	int64_t b = names_add(&c->baskets, basket.text, basket.length);
	int64_t i = names_add(&c->items, item.text, item.length);

	if (b < 0 || i < 0)
		return -ENOMEM;
	if (c->use_count == c->use_capacity) {
		size_t capacity = c->use_capacity ? c->use_capacity * 2 : 4096;
		struct use *uses = reallocarray(c->uses, capacity, sizeof(*uses));

		if (!uses)
			return -ENOMEM;
		c->uses = uses;
		c->use_capacity = capacity;
	}
	c->timed = time && (c->timed || !c->use_count);
	c->uses[c->use_count] = (struct use){
		.basket = (uint32_t)b,
		.item = (uint32_t)i,
		.time = time ? *time : 0,
		.order = c->use_count,
	};
	c->use_count++;
	return 0;
}

void collector_free(struct collector *c)
{
	names_free(&c->baskets);
	names_free(&c->items);
	free(c->uses);
	*c = (struct collector){0};
}

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int newer_first(const struct use *a, const struct use *b)
{
	return a->time != b->time ? COMPARE(b->time, a->time) : COMPARE(b->order, a->order);
}

static int by_basket_and_item(const void *left, const void *right)
{
	const struct use *a = left, *b = right;

	if (a->basket != b->basket)
		return COMPARE(a->basket, b->basket);
	return a->item != b->item ? COMPARE(a->item, b->item) : newer_first(a, b);
}

static int by_basket_and_age(const void *left, const void *right)
{
	const struct use *a = left, *b = right;

	return a->basket != b->basket ? COMPARE(a->basket, b->basket) : newer_first(b, a);
}

static int by_number(const void *left, const void *right)
{
	return COMPARE(*(const uint32_t *)left, *(const uint32_t *)right);
}

/* Leaves the newest use of each item in each basket. */
static void drop_repetitions(struct collector *c)
{
	size_t kept = 0;

	qsort(c->uses, c->use_count, sizeof(*c->uses), by_basket_and_item);
	for (size_t k = 0; k < c->use_count; k++) {
		if (kept && c->uses[kept - 1].basket == c->uses[k].basket &&
		    c->uses[kept - 1].item == c->uses[k].item)
			continue;
		c->uses[kept++] = c->uses[k];
	}
	c->use_count = kept;
}

static int drop_rare_items(struct collector *c, size_t min_count)
{
	size_t *counts = calloc(c->items.count + 1, sizeof(*counts)), kept = 0;

	if (!counts)
		return -ENOMEM;
	for (size_t k = 0; k < c->use_count; k++)
		counts[c->uses[k].item]++;
	for (size_t k = 0; k < c->use_count; k++) {
		if (counts[c->uses[k].item] >= min_count)
			c->uses[kept++] = c->uses[k];
	}
	c->use_count = kept;
	free(counts);
	return 0;
}

static int put_item(struct dataset *data, size_t at, const char *name)
{
	int64_t item = names_add(&data->items, name, strlen(name));

	if (item < 0)
		return -ENOMEM;
	data->item[at] = (uint32_t)item;
	data->sorted[at] = (uint32_t)item;
	return 0;
}

static size_t basket_end(const struct collector *c, size_t first)
{
	size_t end = first;

	while (end < c->use_count && c->uses[end].basket == c->uses[first].basket)
		end++;
	return end;
}

static int fill_baskets(struct dataset *data, const struct collector *c, size_t min_basket)
{
	for (size_t first = 0, end; first < c->use_count; first = end) {
		size_t at = data->start[data->basket_count];

		end = basket_end(c, first);
		if (end - first < min_basket)
			continue;
		for (size_t k = first; k < end; k++, at++) {
			if (put_item(data, at, c->items.text[c->uses[k].item]) < 0)
				return -ENOMEM;
		}
		qsort(data->sorted + at - (end - first), end - first, sizeof(*data->sorted),
		      by_number);
		data->start[++data->basket_count] = at;
	}
	return 0;
}

static int count_uses(struct dataset *data)
{
	data->uses = calloc(data->items.count + 1, sizeof(*data->uses));
	if (!data->uses)
		return -ENOMEM;
	for (size_t k = 0; k < data->start[data->basket_count]; k++)
		data->uses[data->item[k]]++;
	return 0;
}

static int add_known_items(struct dataset *data, char *const *known, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		if (names_add(&data->items, known[k], strlen(known[k])) < 0)
			return -ENOMEM;
	}
	return 0;
}

int dataset_build(struct dataset *data, struct collector *c, size_t min_count, size_t min_basket)
{
	return dataset_build_on(data, NULL, 0, c, min_count, min_basket);
}

int dataset_build_on(struct dataset *data, char *const *known, size_t known_count,
		     struct collector *c, size_t min_count, size_t min_basket)
{
	struct dataset made = {.timed = c->timed};

	if (c->use_count)
		drop_repetitions(c);
	if (drop_rare_items(c, min_count) < 0)
		return -ENOMEM;
	if (c->use_count)
		qsort(c->uses, c->use_count, sizeof(*c->uses), by_basket_and_age);
	made.start = calloc(c->baskets.count + 1, sizeof(*made.start));
	made.item = calloc(c->use_count + 1, sizeof(*made.item));
	made.sorted = calloc(c->use_count + 1, sizeof(*made.sorted));
	if (!made.start || !made.item || !made.sorted ||
	    add_known_items(&made, known, known_count) < 0 ||
	    fill_baskets(&made, c, min_basket) < 0 || count_uses(&made) < 0) {
		dataset_free(&made);
		return -ENOMEM;
	}
	*data = made;
	return 0;
}

bool dataset_basket_has(const struct dataset *data, size_t basket, uint32_t item)
{
	size_t first = data->start[basket];

	return bsearch(&item, data->sorted + first, data->start[basket + 1] - first, sizeof(item),
		       by_number);
}

static uint64_t hash_number(uint64_t h, uint64_t number)
{
	unsigned char bytes[8];

	for (int k = 0; k < 8; k++)
		bytes[k] = (unsigned char)(number >> 8 * k);
	return hash_more(h, bytes, sizeof(bytes));
}

uint64_t dataset_hash(const struct dataset *data)
{
	uint64_t h = hash_number(HASH_START, data->items.count);

	for (size_t i = 0; i < data->items.count; i++)
		h = hash_more(h, data->items.text[i], strlen(data->items.text[i]) + 1);
	h = hash_number(h, data->basket_count);
	for (size_t b = 0; b < data->basket_count; b++) {
		h = hash_number(h, data->start[b + 1]);
		for (size_t k = data->start[b]; k < data->start[b + 1]; k++)
			h = hash_number(h, data->item[k]);
	}
	return h;
}

void dataset_free(struct dataset *data)
{
	names_free(&data->items);
	free(data->uses);
	free(data->start);
	free(data->item);
	free(data->sorted);
	*data = (struct dataset){0};
}
