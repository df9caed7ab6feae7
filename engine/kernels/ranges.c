/* SPDX-License-Identifier: MIT */
/*
 * Ranges of numbers that tables, slots and hyperparameters of optimizers may have, and the search
 * for a number that is outside. Floats are compared as integers, so that callers need no floating
 * point; it is one file because blobs and rows from a program obey the same ranges.
 *
 * Only arguments are read; no lock is needed.
 */
#include "ranges.h"

#include "../f32.h"
#include "../port.h"
#include "optimizers.h"

/* In the order of f32_order(). */
static const struct bounds {
	s64 low, high;
} bounds[] = {
	[KERNEL_FINITE] = { -(s64)F32_GREATEST, F32_GREATEST },
	[KERNEL_SWITCH] = { 0, F32_ONE },
	[KERNEL_ABOVE_ZERO] = { 1, F32_GREATEST },
	[KERNEL_FROM_ZERO] = { 0, F32_GREATEST },
	[KERNEL_UP_TO_ZERO] = { -(s64)F32_GREATEST, 0 },
	[KERNEL_UP_TO_ONE] = { 0, F32_ONE },
	[KERNEL_BELOW_ONE] = { 0, F32_ONE - 1 },
};

bool number_in_range(u32 range, u32 bits)
{
	s64 order = f32_order(bits);

	return order >= bounds[range].low && order <= bounds[range].high &&
	       (range != KERNEL_SWITCH || !bits || bits == F32_ONE);
}

u32 number_bound(u32 range, u32 bits)
{
	s64 low = bounds[range].low;

	if (f32_order(bits) >= low)
		return (u32)bounds[range].high;
	return low < 0 ? F32_SIGN | (u32)-low : (u32)low;
}

u32 slot_range(u32 kernel, u32 slot)
{
	return slot && kernel != U32_MAX ? kernel_optimizers[kernel].slots[slot - 1].range :
					   KERNEL_FINITE;
}

/* Whether a number that is not finite may stand here: it has a sign that the range has, or is NaN. */
static bool allows_any(u32 range, u32 bits)
{
	return f32_nan(bits) || !(bits & F32_SIGN) || bounds[range].low < 0;
}

static bool number_allowed(u32 range, u32 bits, bool any)
{
	return number_in_range(range, bits) ||
	       (any && !f32_finite(bits) && allows_any(range, bits));
}

#define NUMBERS_BLOCK 1024u

/* Slots have two ranges: all finite numbers, and those from 0 on. Both loops become vectors. */
static bool all_in_range(const u32 *from, u64 count, u32 range)
{
	u32 bad = 0;

	if (range == KERNEL_FINITE)
		return f32_row_finite(from, count);
	for (u64 i = 0; i < count; i++)
		bad |= from[i] > F32_GREATEST;
	return !bad;
}

u64 numbers_until(const u32 *from, u64 count, u32 range, bool any)
{
	for (u64 at = 0, n; at < count; at += n) {
		n = count - at < NUMBERS_BLOCK ? count - at : NUMBERS_BLOCK;
		if (all_in_range(from + at, n, range))
			continue;
		for (u64 i = at; i < at + n; i++)
			if (!number_allowed(range, from[i], any))
				return i;
	}
	return count;
}
