// SPDX-License-Identifier: MIT
/* A modelled device does one thing after another, at the speed that its host gives it. */
#include "internal.h"

static u64 since(u64 now, u64 *charged)
{
	u64 more = now - *charged;

	*charged = now;
	return more;
}

/* Also of what failed: bytes and rows are counted where they move. */
static u64 cost(struct engine *e, const struct port_speed *speed)
{
	u64 bytes = reg_read64(e, EMBENG_REG_COUNT_BYTES_READ) +
		    reg_read64(e, EMBENG_REG_COUNT_BYTES_WRITTEN);
	u64 rows = reg_read64(e, EMBENG_REG_COUNT_IDS) +
		   reg_read64(e, EMBENG_REG_COUNT_UNIQUE_ROWS);

	return speed->fixed_ns + since(bytes, &e->paced_bytes) * speed->ns_per_kib / 1024 +
	       since(rows, &e->paced_rows) * speed->ns_per_row;
}

u64 pace(const struct command *command, u16 flags, u64 *timestamp)
{
	struct engine *e = command->queue->engine;
	struct port_speed speed;

	*timestamp = port_now_ns();
	if (!port_speed(e->config.host, &speed))
		return 0;
	if (speed.virtual_time) {
		if (flags & EMBENG_CQE_DONE)
			e->virtual_ns += cost(e, &speed);
		*timestamp = e->virtual_ns;
		return 0;
	}
	if (!(flags & EMBENG_CQE_DONE))
		return 0;
	if (e->free_ns < command->accepted_ns)
		e->free_ns = command->accepted_ns;
	e->free_ns += cost(e, &speed);
	if (e->free_ns > *timestamp)
		*timestamp = e->free_ns;
	return e->free_ns;
}
