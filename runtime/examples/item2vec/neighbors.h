/* SPDX-License-Identifier: MIT */
/* Finds the neighbours of an item in the trained tables. */
#ifndef ITEM2VEC_NEIGHBORS_H
#define ITEM2VEC_NEIGHBORS_H

#include "evaluate.h"

/**
 * struct vectors - the tables' rows after training
 * @in: [items][dim] rows of items_in
 * @out: [items][dim] rows of items_out
 * @mean: [dim] memory for the mean of a basket
 */
struct vectors {
	size_t dim;
	const struct split *split;
	float *in, *out, *mean;
};

/*
 * Scores as the training does: the product of the item's row and the mean of the basket's others.
 */
struct scorer scorer_vectors(struct vectors *v);

#define NEIGHBORS 5

struct neighbor {
	uint32_t item;
	float score;
};

/* Lists the items that go best with @item, best first. Return: how many, at most NEIGHBORS. */
size_t neighbors_of(const struct vectors *v, size_t items, uint32_t item,
		    struct neighbor found[NEIGHBORS]);

#endif
