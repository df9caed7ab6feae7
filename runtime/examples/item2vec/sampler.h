/* SPDX-License-Identifier: MIT */
/* Draws training examples: an item, the rest of its basket, and items that are not in it. */
#ifndef ITEM2VEC_SAMPLER_H
#define ITEM2VEC_SAMPLER_H

#include "../../cli/frame/random.h"
#include "split.h"

/* Most other items of a basket in the context of an example; in larger baskets they are drawn. */
#define CONTEXT_MAX 32

/**
 * struct sampler - examples in a new order in every epoch
 * @random: generator of the draws. It does not affect the order, so @random and @next are all of
 *	the state
 * @examples: [count] indices in split->train of items whose basket has another item
 * @basket_of: [split->train_count] basket of each item
 * @next: index of the next example in @examples
 */
struct sampler {
	const struct dataset *data;
	const struct split *split;
	uint64_t seed;
	struct random random;
	uint32_t *examples, *basket_of;
	size_t count, next;
};

/**
 * struct samples - arrays that sampler_fill() writes
 * @context: [count * CONTEXT_MAX] context items
 * @splits: [count + 1] row splits of @context
 * @targets: [count * (1 + negatives)] for each example the item, then the negatives
 */
struct samples {
	size_t count, negatives;
	int32_t *context;
	int64_t *splits;
	int32_t *targets;
};

/* Return: 0, -ENOMEM, or -ENODATA when no basket has two items to learn from. */
int sampler_init(struct sampler *s, const struct dataset *data, const struct split *split,
		 uint64_t seed);

/* Starts over in the order of an epoch, which depends on no earlier draw. */
void sampler_epoch(struct sampler *s, int64_t epoch);

/* Fills in the next @out->count examples. An epoch must have that many left. */
void sampler_fill(struct sampler *s, struct samples *out);

/* Draws an item that is not in the basket, in proportion to its use in training. */
uint32_t sampler_stranger(const struct dataset *data, const struct split *split, size_t basket,
			  struct random *random);

void sampler_free(struct sampler *s);

#endif
