/* SPDX-License-Identifier: MIT */
/* Holds one item of each basket out, to be guessed; the others are learnt from. */
#ifndef ITEM2VEC_SPLIT_H
#define ITEM2VEC_SPLIT_H

#include "dataset.h"

enum split_by { SPLIT_SEED, SPLIT_TIME };

/**
 * struct split - the same baskets, one item less each
 * @start: [basket_count + 1]
 * @train: [start[basket_count]] items to learn from; also the draw by popularity:
 *	each item as often as it is used in training
 * @held: [basket_count] the item held out
 * @uses: [items] times an item is in @train
 */
struct split {
	size_t *start;
	uint32_t *train, *held, *uses;
	size_t train_count;
};

/**
 * split_baskets() - hold out
 * @by: SPLIT_SEED: any item; SPLIT_TIME: the newest
 *
 * Return: 0, -ENOMEM, or -ENODATA: SPLIT_TIME, but there are no times.
 */
int split_baskets(struct split *split, const struct dataset *data, enum split_by by, uint64_t seed);

void split_free(struct split *split);

#endif
