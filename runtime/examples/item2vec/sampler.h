/* SPDX-License-Identifier: MIT */
/* Training examples: an item, the rest of its basket, and items that are not in it. */
#ifndef ITEM2VEC_SAMPLER_H
#define ITEM2VEC_SAMPLER_H

#include "../../cli/frame/random.h"
#include "split.h"

/* Of a larger basket, this many other items are drawn as context. */
#define CONTEXT_MAX 32

/**
 * struct sampler - examples in an order that is new every epoch
 * @random: of the draws; not of the order, so that @random and @next say it all
 * @examples: [count] places in split->train whose basket has another item
 * @basket_of: [split->train_count]
 * @next: in @examples
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
 * @context: [count * CONTEXT_MAX]
 * @splits: [count + 1] of @context
 * @targets: [count * (1 + negatives)], of each example the item, then the negatives
 */
struct samples {
	size_t count, negatives;
	int32_t *context;
	int64_t *splits;
	int32_t *targets;
};

/* Return: 0, -ENOMEM, or -ENODATA: no basket has two items to learn from. */
int sampler_init(struct sampler *s, const struct dataset *data, const struct split *split,
		 uint64_t seed);

/* Starts over, in the order of this epoch, which no draw before it changes. */
void sampler_epoch(struct sampler *s, int64_t epoch);

/* The next @out->count examples; the caller asks for no more than there are in an epoch. */
void sampler_fill(struct sampler *s, struct samples *out);

/* Any item but the basket's own, in proportion to its use in training. */
uint32_t sampler_stranger(const struct dataset *data, const struct split *split, size_t basket,
			  struct random *random);

void sampler_free(struct sampler *s);

#endif
