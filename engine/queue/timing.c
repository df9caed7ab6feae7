// SPDX-License-Identifier: MIT
/*
 * Computes when a completion may be seen, for a host that models the device's speed. Such a device
 * does one thing after another; a command costs a fixed time and more for bytes and rows. Without a
 * model completions are seen at once.
 *
 * Called with engine->lock held. The sums live in the engine and a reset clears them.
 */
#include "internal.h"

static u64 charge_since(u64 now, u64 *charged)
{
	u64 more = now - *charged;

	*charged = now;
	return more;
}

static u64 bytes_moved(struct engine *e)
{
	return reg_read64(e, EMBENG_REG_COUNT_BYTES_READ) +
	       reg_read64(e, EMBENG_REG_COUNT_BYTES_WRITTEN);
}

static u64 rows_used(struct engine *e)
{
	return reg_read64(e, EMBENG_REG_COUNT_IDS) + reg_read64(e, EMBENG_REG_COUNT_UNIQUE_ROWS);
}

/* Also of what failed: bytes and rows are counted where they move. */
static u64 cost_of_work(struct engine *e, const struct port_speed *speed)
{
	return speed->fixed_ns +
	       charge_since(bytes_moved(e), &e->charged_bytes) * speed->ns_per_kib / 1024 +
	       charge_since(rows_used(e), &e->charged_rows) * speed->ns_per_row;
}

void timing_reset(struct engine *e)
{
	e->charged_bytes = 0;
	e->charged_rows = 0;
	e->free_ns = 0;
}

u64 timing_visible_ns(const struct command *command, u16 flags, u64 *timestamp)
{
	struct engine *e = command->queue->engine;
	struct port_speed speed;

	*timestamp = e->now_ns;
	if (!port_speed(e->config.host, &speed)) {
		/* A model that is switched on later charges nothing of before. */
		e->charged_bytes = bytes_moved(e);
		e->charged_rows = rows_used(e);
		return 0;
	}
	if (speed.virtual_time) {
		if (flags & EMBENG_CQE_DONE)
			e->virtual_ns += cost_of_work(e, &speed);
		*timestamp = e->virtual_ns;
		return 0;
	}
	if (!(flags & EMBENG_CQE_DONE))
		return 0;
	if (e->free_ns < command->accepted_ns)
		e->free_ns = command->accepted_ns;
	e->free_ns += cost_of_work(e, &speed);
	if (e->free_ns > *timestamp)
		*timestamp = e->free_ns;
	return e->free_ns;
}
