// SPDX-License-Identifier: MIT
/*
 * Draws training examples: an item, the rest of its basket, and items that are not in it.
 *
 * The lists belong to the sampler until sampler_free(). The order of an epoch depends on the seed
 * and the number of the epoch alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "sampler.h"

/* A basket may hold nearly every item: then a draw gives up, and may be one of its own. */
#define TRIES 64

static void list_examples(struct sampler *s)
{
	const struct split *split = s->split;

	s->count = 0;
	for (size_t b = 0; b < s->data->basket_count; b++) {
		for (size_t k = split->start[b]; k < split->start[b + 1]; k++) {
			s->basket_of[k] = (uint32_t)b;
			if (split->start[b + 1] - split->start[b] > 1)
				s->examples[s->count++] = (uint32_t)k;
		}
	}
}

int sampler_init(struct sampler *s, const struct dataset *data, const struct split *split,
		 uint64_t seed)
{
	struct sampler made = {
		.data = data,
		.split = split,
		.seed = seed,
		.random = random_seeded(seed, RANDOM_SAMPLES),
	};

	made.examples = calloc(split->train_count + 1, sizeof(*made.examples));
	made.basket_of = calloc(split->train_count + 1, sizeof(*made.basket_of));
	if (!made.examples || !made.basket_of) {
		sampler_free(&made);
		return -ENOMEM;
	}
	list_examples(&made);
	if (!made.count) {
		sampler_free(&made);
		return -ENODATA;
	}
	*s = made;
	return 0;
}

void sampler_epoch(struct sampler *s, int64_t epoch)
{
	struct random order = random_seeded(s->seed, RANDOM_ORDER);

	order = random_seeded(random_next(&order) ^ (uint64_t)epoch, RANDOM_ORDER);
	list_examples(s);
	for (size_t k = s->count; k > 1; k--) {
		size_t other = random_below(&order, k);
		uint32_t swapped = s->examples[k - 1];

		s->examples[k - 1] = s->examples[other];
		s->examples[other] = swapped;
	}
	s->next = 0;
}

uint32_t sampler_stranger(const struct dataset *data, const struct split *split, size_t basket,
			  struct random *random)
{
	uint32_t item = 0;

	for (int tries = 0; tries < TRIES; tries++) {
		item = split->train[random_below(random, split->train_count)];
		if (!dataset_basket_has(data, basket, item))
			break;
	}
	return item;
}

static size_t fill_context(struct sampler *s, size_t place, int32_t *context)
{
	const struct split *split = s->split;
	size_t b = s->basket_of[place], first = split->start[b];
	size_t others = split->start[b + 1] - first - 1, count = 0;

	/* Walks the basket, taking each with the chance that makes CONTEXT_MAX in the end. */
	for (size_t k = first; k < split->start[b + 1]; k++) {
		if (k == place)
			continue;
		if (others <= CONTEXT_MAX - count ||
		    random_below(&s->random, others) < CONTEXT_MAX - count)
			context[count++] = (int32_t)split->train[k];
		others--;
	}
	return count;
}

void sampler_fill(struct sampler *s, struct samples *out)
{
	int32_t *target = out->targets;

	out->splits[0] = 0;
	for (size_t k = 0; k < out->count; k++) {
		size_t place = s->examples[s->next++ % s->count];

		out->splits[k + 1] = out->splits[k] +
				     (int64_t)fill_context(s, place, out->context + out->splits[k]);
		*target++ = (int32_t)s->split->train[place];
		for (size_t n = 0; n < out->negatives; n++)
			*target++ = (int32_t)sampler_stranger(s->data, s->split,
							      s->basket_of[place], &s->random);
	}
}

void sampler_free(struct sampler *s)
{
	free(s->examples);
	free(s->basket_of);
	*s = (struct sampler){0};
}
