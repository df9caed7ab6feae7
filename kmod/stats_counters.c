// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters over all boots of the device. The device counts from 0 after each boot, so the driver
 * adds up: before a reset it keeps what the device is about to forget, and on each look of the
 * watchdog it notes the values, for resets that something else makes.
 *
 * Everything is under readings.lock, which a reset takes for a moment only, so that who reads the
 * counters never waits for one. Nothing is allocated, and the counters live as long as the device.
 */
#include <linux/lockdep.h>

#include "driver.h"

#define FIRST EMBENG_REG_COUNT_COMMANDS

static u32 find_counter_register(u32 counter)
{
	return counter < EMBENG_COUNTERS ? FIRST + 8 * counter :
					   EMBENG_CORE_BUSY(counter - EMBENG_COUNTERS);
}

static u32 find_counter_index(u32 reg)
{
	return reg < EMBENG_CORE_BUSY(0) ? (reg - FIRST) / 8 :
					   EMBENG_COUNTERS + (reg - EMBENG_CORE_BUSY(0)) / 8;
}

static bool is_gauge_register(u32 reg)
{
	return reg == EMBENG_REG_TABLE_MEMORY_USED || reg == EMBENG_REG_MODEL_MEMORY;
}

/* The count since the last boot. A device that something else has reset counts from 0 again. */
static u64 count_since_boot(struct embeng_device *ed, u32 counter, bool there)
{
	u64 seen = ed->counters.seen[counter], now;

	if (!there)
		return seen;
	now = embeng_read64(ed, find_counter_register(counter));
	return now < seen ? seen + now : now;
}

/**
 * embeng_counter() - the value of a counter since the driver was bound
 * @ed: device, under readings.lock
 * @reg: register from COUNT_COMMANDS on, or EMBENG_CORE_BUSY()
 *
 * Return: the sum over all boots; for a register that is a gauge, its value now.
 */
u64 embeng_counter(struct embeng_device *ed, u32 reg)
{
	bool there = embeng_readable(ed);
	u32 counter = find_counter_index(reg);

	lockdep_assert_held(&ed->readings.lock);
	if (is_gauge_register(reg))
		return there ? embeng_read64(ed, reg) : 0;
	return ed->counters.kept[counter] + count_since_boot(ed, counter, there);
}

/**
 * embeng_counters_look() - note the counters, in case something else resets the device
 * @ed: device, under readings.lock
 */
void embeng_counters_look(struct embeng_device *ed)
{
	u32 i;
	u64 now;

	if (!embeng_readable(ed))
		return;
	for (i = 0; i < ARRAY_SIZE(ed->counters.seen); i++) {
		now = embeng_read64(ed, find_counter_register(i));
		if (now > ed->counters.seen[i])
			ed->counters.seen[i] = now;
	}
}

/**
 * embeng_counters_keep() - add this boot's counters to the sums, just before a reset
 * @ed: device, under readings.lock
 */
void embeng_counters_keep(struct embeng_device *ed)
{
	bool there = embeng_readable(ed);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ed->counters.seen); i++) {
		ed->counters.kept[i] += count_since_boot(ed, i, there);
		ed->counters.seen[i] = 0;
	}
}
