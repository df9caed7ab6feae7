/* SPDX-License-Identifier: MIT */
/* Holds one item of each basket out for evaluation; the others are trained on. */
#ifndef ITEM2VEC_SPLIT_H
#define ITEM2VEC_SPLIT_H

#include "dataset.h"

enum split_by { SPLIT_SEED, SPLIT_TIME };

/**
 * struct split - the baskets, each without its held-out item
 * @start: [basket_count + 1] index of each basket's first item in @train
 * @train: [start[basket_count]] items to train on. Drawing from it is a draw by popularity:
 *	each item is in it as often as it is used in training
 * @held: [basket_count] held-out item of each basket
 * @uses: [items] number of times that each item is in @train
 */
struct split {
	size_t *start;
	uint32_t *train, *held, *uses;
	size_t train_count;
};

/**
 * split_baskets() - hold one item of each basket out
 * @by: SPLIT_SEED for any item; SPLIT_TIME for the newest
 *
 * Return: 0, -ENOMEM, or -ENODATA for SPLIT_TIME without times.
 */
int split_baskets(struct split *split, const struct dataset *data, enum split_by by, uint64_t seed);

void split_free(struct split *split);

#endif
