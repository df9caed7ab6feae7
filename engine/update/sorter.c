// SPDX-License-Identifier: MIT
/*
 * How each stage of a sort runs: over all slices, by the workers or by the caller alone, and how
 * the counts of its slices become places. The sort of items of 32 bits, the sort of longer items
 * and the making of groups share it.
 *
 * A sorter belongs to its caller; no lock is needed.
 */
#include "row_sort_pass.h"

bool sorter_run(struct sorter *s, stage_fn stage)
{
	if (s->shared)
		return workers_run(s->pass.command, stage, &s->pass, s->pass.slices,
				   s->pass.count * 16);
	for (u64 slice = 0; slice < s->pass.slices; slice++)
		stage(&s->pass, slice, 0);
	return !command_is_cut(s->pass.command);
}

bool sorter_prefix(const struct pass *pass)
{
	bool moves = true;
	u32 sum = 0;

	for (u64 digit = 0; digit < 1ull << pass->bits; digit++) {
		u32 before = sum;

		for (u64 slice = 0; slice < pass->slices; slice++) {
			u32 *count = &pass->starts[(slice << pass->bits) + digit];
			u32 c = *count;

			*count = sum;
			sum += c;
		}
		moves &= sum - before != pass->count;
	}
	return moves;
}
