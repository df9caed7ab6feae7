// SPDX-License-Identifier: MIT
/*
 * The device asks its driver for a reset: its tables are damaged, or the admin queue is. Commands of
 * any queue may find that out, so it is apart from the admin queue's own commands.
 *
 * Called with engine->lock held.
 */
#include "internal.h"

/* The driver's own vector tells of it, where the driver has armed that. */
void admin_fault(struct engine *e)
{
	reg_write32(e, EMBENG_REG_STATUS, EMBENG_DEVICE_FAULT);
	if (e->queues[0])
		ring_interrupt_if_armed(e->queues[0]);
}
