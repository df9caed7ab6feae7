// SPDX-License-Identifier: MIT
/*
 * Draws random bags of a feature, in the shape that it wants. The ends of a table come more often
 * than other rows, since mistakes are likely there.
 *
 * The arrays belong to the struct compare_input until compare_input_free().
 */
#include <errno.h>
#include <stdlib.h>

#include "compare_lookups.h"

#define BAG 8 /* most ids of a sample */
#define SAMPLES_MOST (1 << 22)

/* Return: how many bags there are; -1: too many. */
static int64_t set_bag_shape(struct compare_input *in, const struct embeng_feature_config *f,
			     int64_t samples)
{
	int64_t total = 1;

	in->rank = f->output_rank ? f->output_rank + 1 : 2;
	for (size_t i = 0; i + 1 < in->rank; i++) {
		in->shape[i] = f->output_rank && f->output_shape[i] ? f->output_shape[i] : samples;
		if (in->shape[i] > SAMPLES_MOST / total)
			return -1;
		total *= in->shape[i];
	}
	in->shape[in->rank - 1] = BAG;
	return total;
}

/* Row-major number of a sample as the indices of all dimensions but the last. */
static void set_place(const struct compare_input *in, int64_t sample, int64_t k, int64_t *place)
{
	place[in->rank - 1] = k;
	for (size_t i = in->rank - 1; i-- > 0; sample /= in->shape[i])
		place[i] = sample % in->shape[i];
}

/* The table's ends come more often than others. */
static int64_t draw_id(struct random *random, int64_t rows)
{
	switch (random_below(random, 16)) {
	case 0:
		return 0;
	case 1:
		return rows - 1;
	default:
		return (int64_t)(random_next(random) % (uint64_t)rows);
	}
}

/* Above 0: what is not is where the two lookups differ on purpose. */
static float draw_weight(struct random *random)
{
	return (float)(1 + random_below(random, 64)) / 16.0f;
}

int compare_input_make(struct compare_input *in, const struct embeng_feature_config *f,
		       int64_t rows, int64_t samples, struct random *random)
{
	int64_t total = set_bag_shape(in, f, samples);
	size_t most = total < 0 ? 0 : (size_t)total * BAG;

	if (total < 0)
		return -EFBIG;
	in->indices = calloc(most * in->rank + 1, sizeof(*in->indices));
	in->ids = calloc(most + 1, sizeof(*in->ids));
	if (!f->max_sequence_length)
		in->weights = calloc(most + 1, sizeof(*in->weights));
	if (!in->indices || !in->ids || (!f->max_sequence_length && !in->weights))
		return -ENOMEM;
	for (int64_t sample = 0; sample < total; sample++) {
		int64_t length = random_below(random, BAG + 1);

		for (int64_t k = 0; k < length; k++, in->count++) {
			set_place(in, sample, k, in->indices + in->count * in->rank);
			in->ids[in->count] = draw_id(random, rows);
			if (in->weights)
				in->weights[in->count] = draw_weight(random);
		}
	}
	return 0;
}

void compare_input_free(struct compare_input *in)
{
	free(in->indices);
	free(in->ids);
	free(in->weights);
}
