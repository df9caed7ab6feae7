// SPDX-License-Identifier: MIT
/*
 * Finds the place of a number that is not finite, which is rare: a kernel says of many numbers at
 * once whether there is one. It is apart from the kernels because they are compiled once for each
 * variant. Nothing is kept; no lock is needed.
 */
#include "../port.h"
#include "kernels.h"

u64 kernel_finite_until(const struct kernel_ops *kernels, const float *from, u64 count)
{
	u64 i = 0;
	u32 bits;

	if (kernels->all_finite(from, count))
		return count;
	for (; i < count; i++) {
		memcpy(&bits, from + i, sizeof(bits));
		if (!f32_finite(bits))
			break;
	}
	return i;
}
