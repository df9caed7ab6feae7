// SPDX-License-Identifier: MIT
/*
 * Requests that a driver writes into BAR 0: boot an image, reset. The driver raises a sequence
 * number, and the answer repeats it when the work is done; a reset may take many looks. No queue is
 * needed for it, since there is none before the first boot.
 *
 * Called with engine->lock held, from each look at the device.
 */
#include "../queue/internal.h"

static int control_step(struct engine *e)
{
	u32 sequence = reg_read32(e, EMBENG_REG_CONTROL_SEQUENCE);

	if (e->resetting)
		return boot_reset_step(e);
	if (sequence == e->control_sequence)
		return 0;
	e->control_sequence = sequence;
	if (reg_read32(e, EMBENG_REG_CONTROL) == EMBENG_CONTROL_RESET)
		boot_reset_begin(e);
	else
		reg_write32(e, EMBENG_REG_CONTROL_DONE, sequence);
	return 1;
}

int requests_step(struct engine *e)
{
	int moved = control_step(e);
	u32 sequence = reg_read32(e, EMBENG_REG_BOOT_SEQUENCE);

	if (e->resetting || sequence == e->boot_sequence)
		return moved;
	e->boot_sequence = sequence;
	if (reg_read32(e, EMBENG_REG_BOOT_STATE) != EMBENG_BOOT_RUNNING)
		boot_load(e);
	reg_write32(e, EMBENG_REG_BOOT_DONE, sequence);
	return 1;
}
