/* SPDX-License-Identifier: GPL-2.0-only */
/* stats_counters.c: the device's counters, summed over all its boots. */
#ifndef EMBENG_STATS_COUNTERS_H
#define EMBENG_STATS_COUNTERS_H

#include <linux/types.h>

#include "../uapi/embeng_regs.h"

struct embeng_device;

/* Number of registers that are counters. */
#define EMBENG_COUNTS(name, offset, bytes, writer, reset, words) \
	+ ((offset) >= EMBENG_REG_COUNT_COMMANDS)
#define EMBENG_COUNTERS (0 EMBENG_REGISTER_TABLE(EMBENG_COUNTS))

/**
 * struct embeng_counters - the registers from COUNT_COMMANDS on, then the busy times of the cores
 * @kept: sums over all earlier boots
 * @seen: values of this boot at the last look
 */
struct embeng_counters {
	u64 kept[EMBENG_COUNTERS + EMBENG_CORES_MAX];
	u64 seen[EMBENG_COUNTERS + EMBENG_CORES_MAX];
};

u64 embeng_counter(struct embeng_device *ed, u32 reg);
void embeng_counters_look(struct embeng_device *ed);
void embeng_counters_keep(struct embeng_device *ed);

#endif
