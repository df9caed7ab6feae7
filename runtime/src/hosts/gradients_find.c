// SPDX-License-Identifier: MIT
/*
 * Finds what a replica's segment of gradients has for the owner handle. It is a file because replicas that have
 * queues of the device (gradients.c) and those that are joined (joined.c) are both served with it.
 *
 * All is the gradients thread's. Gradients are read where they came, and sums of them made in h->summing.
 */
#include <string.h>

#include "base/bits.h"
#include "samples.h"

void gradients_name_rates(const struct hosts *h, const struct segment_head *head,
			  struct embeng_rate *rates)
{
	const struct embeng_model *part = h->owner->model, *whole = h->e->model;
	const uint32_t *values = (const uint32_t *)(const void *)(head + 1);

	for (size_t r = 0; r < part->rate_count; r++) {
		size_t i = 0;

		while (strcmp(whole->rates[i], part->rates[r]))
			i++;
		rates[r] = (struct embeng_rate){part->rates[r],
						rates_find(h->e, h->updated + 1, i, values[i])};
	}
}

int gradients_find(struct hosts *h, const struct segment_head *head, struct reading *segment,
		   const float **features, size_t *elements)
{
	static const float none;
	const uint32_t host = hosts_home(h, head->replica);
	const bool sums = head->flags & SEGMENT_SUMS;
	size_t count = 0;

	for (size_t f = 0; f < h->e->model->feature_count; f++) {
		const uint64_t *given;

		if (h->features[f] < 0)
			continue;
		given = read_next(segment, sizeof(*given));
		features[count] = NULL;
		if (given && *given)
			features[count] = read_next(segment, 4 * elements[count]);
		if (!given || (*given && !features[count]))
			return segment_bad(h, host, "gradients");
		count++;
	}
	for (size_t i = 0; i < h->list_count; i++) {
		const bool summed = i < h->summed_lists || (sums && i < h->trained_lists);

		if (h->lists[i].served < 0)
			continue;
		features[count] = summed ? read_next(segment, 4 * elements[count]) : &none;
		if (!features[count++])
			return segment_bad(h, host, "sums of gradients");
	}
	while (count < h->owner->model->feature_count)
		features[count++] = &none;
	return sums ? 0 : samples_take(h, host, segment, elements, features);
}
