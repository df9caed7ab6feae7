/* SPDX-License-Identifier: MIT */
/* What goes with an item, by the tables that were learnt. */
#ifndef ITEM2VEC_NEIGHBORS_H
#define ITEM2VEC_NEIGHBORS_H

#include "evaluate.h"

/**
 * struct vectors - the tables, read back
 * @in: [items][dim]
 * @out: [items][dim]
 * @mean: [dim] room for the basket in question
 */
struct vectors {
	size_t dim;
	const struct split *split;
	float *in, *out, *mean;
};

/* Scores items as the training does: the mean of a basket's rest times the item. */
struct scorer scorer_vectors(struct vectors *v);

#define NEIGHBORS 5

struct neighbor {
	uint32_t item;
	float score;
};

/* The items that score highest beside @item, best first. Return: how many, at most NEIGHBORS. */
size_t neighbors_of(const struct vectors *v, size_t items, uint32_t item,
		    struct neighbor found[NEIGHBORS]);

#endif
