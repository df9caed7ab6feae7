// SPDX-License-Identifier: MIT
#include "optimizers.h"

#define ONE_MORE(name, value) +1
#define PARAMETER(name, value) { name, value },
#define DESCRIPTION(KIND) \
	[KERNEL_##KIND] = { \
		.name = KERNEL_##KIND##_NAME, \
		.slot_count = 0 KERNEL_##KIND##_SLOTS(ONE_MORE), \
		.hyper_count = 0 KERNEL_##KIND##_HYPER(ONE_MORE), \
		.slots = { KERNEL_##KIND##_SLOTS(PARAMETER) }, \
		.hyper = { KERNEL_##KIND##_HYPER(PARAMETER) }, \
	},

const struct kernel_optimizer kernel_optimizers[KERNEL_OPTIMIZER_COUNT] = {
	KERNEL_OPTIMIZERS(DESCRIPTION)
};
