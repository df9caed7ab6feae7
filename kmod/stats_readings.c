// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers for those who monitor the device: as they are, or as they were when the device could
 * last be read. A device that is being reset, or whose bus has failed, is not read, and nobody
 * waits for it.
 *
 * readings.lock is held over a reading of all registers and no longer, so that a reader waits
 * microseconds. A reset takes it to note the last values and to hold readers off; from then on
 * until the device has booted they are given these, with their age. The watchdog notes them at each
 * look, for a device that goes without a word. Nothing is allocated.
 */
#include <linux/cleanup.h>
#include <linux/ktime.h>

#include "driver.h"

/**
 * embeng_readable() - tell whether registers may be read
 * @ed: device, under readings.lock
 */
bool embeng_readable(const struct embeng_device *ed)
{
	return !READ_ONCE(ed->resetting) && !embeng_gone(ed) && !READ_ONCE(ed->offline) &&
	       embeng_present(ed);
}

static void read_registers(struct embeng_device *ed)
{
	u32 i;

	for (i = 0; i < EMBENG_REGISTERS; i++)
		ed->readings.registers[i] = embeng_register_read(ed, &embeng_registers[i]);
	ed->readings.taken_ns = ktime_get_ns();
}

static void note_readings(struct embeng_device *ed)
{
	if (embeng_readable(ed))
		read_registers(ed);
}

/**
 * embeng_readings_look() - note all registers, and the counters, in case they cannot be read later
 * @ed: device, under reset_lock
 */
void embeng_readings_look(struct embeng_device *ed)
{
	guard(mutex)(&ed->readings.lock);
	note_readings(ed);
	embeng_counters_look(ed);
}

/**
 * embeng_readings_stop() - note all registers for the last time before a reset
 * @ed: device; reset_lock is held for writing
 *
 * Nobody reads the device after this until ed->resetting is cleared.
 */
void embeng_readings_stop(struct embeng_device *ed)
{
	guard(mutex)(&ed->readings.lock);
	note_readings(ed);
	embeng_counters_keep(ed);
	/* Completions from here on are the reset's doing, and are not believed. */
	WRITE_ONCE(ed->resetting, true);
}

/**
 * embeng_readings_wedge() - note what a device that is about to be given up says of itself
 * @ed: device that did not boot; reset_lock is held for writing
 *
 * It is the last that readers learn of it: its boot state and error.
 */
void embeng_readings_wedge(struct embeng_device *ed)
{
	guard(mutex)(&ed->readings.lock);
	if (embeng_present(ed))
		read_registers(ed);
}

/**
 * embeng_reading() - the value of a register, or the last one that is known
 * @ed: device, under readings.lock
 * @index: index in embeng_registers
 */
u64 embeng_reading(struct embeng_device *ed, u32 index)
{
	lockdep_assert_held(&ed->readings.lock);
	return embeng_readable(ed) ? embeng_register_read(ed, &embeng_registers[index]) :
				     ed->readings.registers[index];
}

/**
 * embeng_reading_of() - embeng_reading() of a register by its offset, without the lock
 * @ed: device, under no lock
 * @reg: register of the table
 */
u64 embeng_reading_of(struct embeng_device *ed, u32 reg)
{
	u32 i;

	guard(mutex)(&ed->readings.lock);
	for (i = 0; i < EMBENG_REGISTERS; i++) {
		if (embeng_registers[i].offset == reg)
			return embeng_reading(ed, i);
	}
	return 0;
}

/**
 * embeng_readings_age() - how old the values are that readers are given
 * @ed: device, under readings.lock
 *
 * Return: nanoseconds, 0 while the device is read itself.
 */
u64 embeng_readings_age(struct embeng_device *ed)
{
	return embeng_readable(ed) ? 0 : ktime_get_ns() - ed->readings.taken_ns;
}
