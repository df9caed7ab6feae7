// SPDX-License-Identifier: MIT
/*
 * The ranges of the numbers in slots, by the kind of their optimizer, and these ranges in words. They
 * are the engine's. They are apart from numbers.c, which needs a whole model.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "../../../engine/blob/blob.h"
#include "../../../engine/kernels/ranges.h"
#include "../../../engine/kernels/optimizers.h"
#include "numbers.h"

uint32_t numbers_slot_range(enum embeng_optimizer_name kind, size_t slot)
{
	return slot_range(optimizer_kernel(optimizer_info(kind)->engine_kind), (uint32_t)slot + 1);
}

const char *numbers_allowed(uint32_t range)
{
	switch (range) {
	case KERNEL_SWITCH:
		return "0 or 1";
	case KERNEL_ABOVE_ZERO:
		return "above 0 and finite";
	case KERNEL_FROM_ZERO:
		return "0 or above, and finite";
	case KERNEL_UP_TO_ZERO:
		return "0 or below, and finite";
	case KERNEL_UP_TO_ONE:
		return "within [0, 1]";
	case KERNEL_BELOW_ONE:
		return "within [0, 1), 1 itself excluded";
	}
	return "finite";
}
