/* SPDX-License-Identifier: MIT */
/* hit@10: how often the item held out ranks in the first 10 of 100. */
#ifndef ITEM2VEC_EVALUATE_H
#define ITEM2VEC_EVALUATE_H

#include "split.h"

#define EVALUATE_OTHERS 99
#define EVALUATE_FIRST 10

/**
 * struct scorer - says how well items go with a basket
 * @begin: a basket comes; NULL: nothing to prepare
 * @score: of an item, higher is better; NaN never wins
 */
struct scorer {
	void (*begin)(void *arg, size_t basket);
	float (*score)(void *arg, uint32_t item);
	void *arg;
};

/**
 * evaluate() - the share of baskets whose held-out item is a hit
 * @scorers: [count], all judged on the same draw
 * @hit_at_10: [count], out
 *
 * Each basket's item stands against 99 that are not in the basket, drawn by
 * their use in training. A tie is a miss.
 */
void evaluate(const struct dataset *data, const struct split *split, uint64_t seed,
	      const struct scorer *scorers, size_t count, double *hit_at_10);

/* The baseline: an item is worth its uses in training. */
struct scorer scorer_popularity(const struct split *split);

#endif
