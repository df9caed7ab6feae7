/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_KERNELS_SEGMENTS_H
#define ENGINE_KERNELS_SEGMENTS_H

#include "kernels.h"

/**
 * kernel_find_segment() - segment of an occurrence
 * @segments: in occurrence order
 * @count: how many, at least 1
 * @occurrence: within one of them
 *
 * Return: the segment that holds the occurrence.
 */
static inline const struct kernel_segment *kernel_find_segment(
	const struct kernel_segment *segments, u64 count, u64 occurrence)
{
	u64 low = 0;

	while (count > 1) {
		u64 half = count / 2;

		if (segments[low + half].first <= occurrence) {
			low += half;
			count -= half;
		} else {
			count = half;
		}
	}
	/* An empty segment begins where its successor does: the search ends behind it. */
	return &segments[low];
}

#endif
