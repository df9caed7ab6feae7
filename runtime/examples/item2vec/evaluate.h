/* SPDX-License-Identifier: MIT */
/* Computes hit@10: how often the held-out item is among the first 10 of 100. */
#ifndef ITEM2VEC_EVALUATE_H
#define ITEM2VEC_EVALUATE_H

#include "split.h"

#define EVALUATE_OTHERS 99
#define EVALUATE_FIRST 10

/**
 * struct scorer - a way to tell how well items go with a basket
 * @begin: prepares for a basket; NULL: there is nothing to prepare
 * @score: returns the score of an item, where higher is better; NaN never wins
 */
struct scorer {
	void (*begin)(void *arg, size_t basket);
	float (*score)(void *arg, uint32_t item);
	void *arg;
};

/**
 * evaluate() - compute the share of baskets whose held-out item is a hit
 * @scorers: [count] scorers, which are all judged on the same drawn items
 * @hit_at_10: [count] filled with the shares
 *
 * Each basket's item competes with 99 that are not in the basket, drawn in proportion to
 * their use in training. A tie is a miss.
 */
void evaluate(const struct dataset *data, const struct split *split, uint64_t seed,
	      const struct scorer *scorers, size_t count, double *hit_at_10);

/* The baseline: the score of an item is how often it is used in training. */
struct scorer scorer_popularity(const struct split *split);

#endif
