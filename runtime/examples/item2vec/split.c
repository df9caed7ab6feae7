// SPDX-License-Identifier: MIT
/*
 * Splits baskets into training items and one held-out item each.
 *
 * The lists belong to the struct split until split_free().
 */
#include <errno.h>
#include <stdlib.h>

#include "../../cli/frame/random.h"
#include "split.h"

static void hold_out_items(struct split *split, const struct dataset *data, enum split_by by,
			   uint64_t seed)
{
	struct random random = random_seeded(seed, RANDOM_SPLIT);

	for (size_t b = 0; b < data->basket_count; b++) {
		size_t first = data->start[b], count = data->start[b + 1] - first;
		size_t out = by == SPLIT_TIME ? count - 1 : random_below(&random, count);

		split->start[b] = split->train_count;
		split->held[b] = data->item[first + out];
		for (size_t k = 0; k < count; k++) {
			if (k == out)
				continue;
			split->train[split->train_count++] = data->item[first + k];
			split->uses[data->item[first + k]]++;
		}
	}
	split->start[data->basket_count] = split->train_count;
}

int split_baskets(struct split *split, const struct dataset *data, enum split_by by, uint64_t seed)
{
	size_t baskets = data->basket_count;
	struct split made = {0};

	if (by == SPLIT_TIME && !data->timed)
		return -ENODATA;
	made.start = calloc(baskets + 1, sizeof(*made.start));
	made.train = calloc(data->start[baskets] + 1, sizeof(*made.train));
	made.held = calloc(baskets + 1, sizeof(*made.held));
	made.uses = calloc(data->items.count + 1, sizeof(*made.uses));
	if (!made.start || !made.train || !made.held || !made.uses) {
		split_free(&made);
		return -ENOMEM;
	}
	hold_out_items(&made, data, by, seed);
	*split = made;
	return 0;
}

void split_free(struct split *split)
{
	free(split->start);
	free(split->train);
	free(split->held);
	free(split->uses);
	*split = (struct split){0};
}
