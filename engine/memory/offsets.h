/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ENGINE_OFFSETS_H
#define EMBENG_ENGINE_OFFSETS_H

#include "../types.h"

/**
 * offsets_ascend() - whether row offsets never fall
 * @offsets: [@samples + 1] integers of 64 bits
 * @samples: bags
 *
 * There is no branch for each, so that compilers take them by vectors. A caller that must name the
 * one that falls looks for it afterwards.
 *
 * Return: true where none is below the one before, and all are below 2^63.
 */
static inline bool offsets_ascend(const void *offsets, u64 samples)
{
	typedef u64 __attribute__((may_alias)) offset; /* int64_t in programs */
	const offset *at = offsets;
	u64 bad = at[0];

	for (u64 i = 1; i <= samples; i++)
		bad |= at[i] | (at[i] - at[i - 1]);
	return !(bad >> 63);
}

#endif
