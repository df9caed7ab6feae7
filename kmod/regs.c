// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers as a table of name, offset and width, made from the table in uapi/embeng_regs.h,
 * for those who show or copy all of them: debugfs, the dump of a hang and the counters of QUERY.
 *
 * It is a file of its own so that the table exists once. It has no state and takes no lock.
 * A caller that wants values that fit together holds reset_lock, since a register says nothing
 * during a reset.
 */
#include "driver.h"

const struct embeng_register_entry embeng_registers[EMBENG_REGISTERS] = {
#define ENTRY_OF(name, offset, bytes, writer, reset, words) \
	{ #name, offset, bytes },
	EMBENG_REGISTER_TABLE(ENTRY_OF)
#undef ENTRY_OF
};

/**
 * embeng_register_read() - read a register of the table at its own width
 * @ed: device
 * @entry: entry of embeng_registers
 *
 * Return: its value; all ones where the device is gone.
 */
u64 embeng_register_read(const struct embeng_device *ed, const struct embeng_register_entry *entry)
{
	return entry->bytes == sizeof(u32) ? embeng_read32(ed, entry->offset) :
					     embeng_read64(ed, entry->offset);
}
