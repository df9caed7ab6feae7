// SPDX-License-Identifier: MIT
/*
 * Finds how many of a row's next occurrences make up one run: they come from one replica, and are
 * at most KERNEL_RUN. A sum that was made elsewhere is a run by itself. The update kernels and the
 * engine's cutting of hot rows must agree on these runs, so both call this function.
 *
 * There is no floating point in it, and it looks only at its arguments.
 */
#include "segments.h"

u64 kernel_run_length(const struct kernel_segment *segments, u64 segment_count, const u32 *occ,
		      u64 n, u32 *replica)
{
	const struct kernel_segment *end = segments + segment_count;
	const struct kernel_segment *s = kernel_find_segment(segments, segment_count, occ[0]);
	u64 low = 1, high = n < KERNEL_RUN ? n : KERNEL_RUN;
	u64 limit;

	*replica = s->replica;
	if (s->sums)
		return 1;
	while (s + 1 < end && s[1].replica == *replica && !s[1].sums)
		s++;
	limit = s->end;
	while (low < high) {
		u64 middle = low + (high - low) / 2;

		if (occ[middle] < limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
