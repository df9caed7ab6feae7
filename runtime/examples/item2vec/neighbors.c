// SPDX-License-Identifier: MIT
/*
 * Scores items by the products of the two tables that were learned, and finds the items that go
 * best with one.
 */
#include "neighbors.h"

static float dot_product(const float *a, const float *b, size_t dim)
{
	float sum = 0;

	for (size_t d = 0; d < dim; d++)
		sum += a[d] * b[d];
	return sum;
}

static void begin_basket(void *arg, size_t basket)
{
	struct vectors *v = arg;
	size_t first = v->split->start[basket], end = v->split->start[basket + 1];

	for (size_t d = 0; d < v->dim; d++) {
		float sum = 0;

		for (size_t k = first; k < end; k++)
			sum += v->in[v->split->train[k] * v->dim + d];
		v->mean[d] = end > first ? sum / (float)(end - first) : 0;
	}
}

static float score_item(void *arg, uint32_t item)
{
	const struct vectors *v = arg;

	return dot_product(v->mean, v->out + item * v->dim, v->dim);
}

struct scorer scorer_vectors(struct vectors *v)
{
	return (struct scorer){.begin = begin_basket, .score = score_item, .arg = v};
}

size_t neighbors_of(const struct vectors *v, size_t items, uint32_t item,
		    struct neighbor found[NEIGHBORS])
{
	size_t count = 0;

	for (uint32_t other = 0; other < items; other++) {
		float s = dot_product(v->in + item * v->dim, v->out + other * v->dim, v->dim);
		size_t at = count;

		if (other == item)
			continue;
		while (at && found[at - 1].score < s)
			at--;
		if (at == NEIGHBORS)
			continue;
		count += count < NEIGHBORS;
		for (size_t k = count - 1; k > at; k--)
			found[k] = found[k - 1];
		found[at] = (struct neighbor){other, s};
	}
	return count;
}
