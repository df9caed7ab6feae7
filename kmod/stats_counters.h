/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stats_counters.c: the device's counters, summed over all its boots. stats_readings.c: its
 * registers for those who monitor it.
 */
#ifndef EMBENG_STATS_COUNTERS_H
#define EMBENG_STATS_COUNTERS_H

#include <linux/mutex.h>
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

#define EMBENG_REGISTER_COUNTED(name, offset, bytes, writer, reset, words) + 1
#define EMBENG_REGISTERS (0 EMBENG_REGISTER_TABLE(EMBENG_REGISTER_COUNTED))

/**
 * struct embeng_readings - registers as they were when the device could last be read
 * @lock: guards all of it, and the counters; orders readers of the device with its resets
 * @taken_ns: when that was, CLOCK_MONOTONIC
 * @registers: their values, in the order of embeng_registers
 */
struct embeng_readings {
	struct mutex lock; /* orders readers of the device with its resets */
	u64 taken_ns;
	u64 registers[EMBENG_REGISTERS];
};

/* stats_readings.c */
bool embeng_readable(const struct embeng_device *ed);
void embeng_readings_look(struct embeng_device *ed);
void embeng_readings_stop(struct embeng_device *ed);
void embeng_readings_wedge(struct embeng_device *ed);
u64 embeng_reading(struct embeng_device *ed, u32 index);
u64 embeng_reading_of(struct embeng_device *ed, u32 reg);
u64 embeng_readings_age(struct embeng_device *ed);

/* stats_counters.c */
u64 embeng_counter(struct embeng_device *ed, u32 reg);
void embeng_counters_look(struct embeng_device *ed);
void embeng_counters_keep(struct embeng_device *ed);

#endif
