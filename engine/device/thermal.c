// SPDX-License-Identifier: MIT
/*
 * Power, clock and temperature of a device whose host models them: power and clock go with the share
 * of the cores that is busy, temperature follows power as one heat capacity behind one resistance.
 * The results are registers that the driver reads. None of them makes the device faster or slower.
 *
 * Called with engine->lock held.
 */
#include "device.h"

#define STEP_NS 10000000u
#define SHARE_ONE 1024u

static u64 busy_ns(struct engine *e)
{
	u64 sum = 0;
	u32 core;

	for (core = 0; core < e->config.cores; core++)
		sum += reg_read64(e, EMBENG_CORE_BUSY(core));
	return sum;
}

static u64 busy_share(struct engine *e, u64 passed_ns)
{
	u64 now = busy_ns(e), busy = now - e->thermal.busy_ns, all = passed_ns * e->config.cores;

	e->thermal.busy_ns = now;
	return busy < all ? busy * SHARE_ONE / all : SHARE_ONE;
}

/* In microdegrees, so that what is left of the way never rounds to nothing. */
static s64 next_temperature(const struct port_thermal *c, s64 from, u64 power_uw, u64 passed_ns)
{
	s64 goal = (s64)c->ambient_mc * 1000 + (s64)(power_uw / 1000 * c->mk_per_w);
	u64 time_us = (u64)c->time_ms * 1000, passed_us = passed_ns / 1000;

	if (!from || passed_us >= time_us)
		return goal;
	return from + (goal - from) * (s64)passed_us / (s64)time_us;
}

static u32 scale_by_share(u32 idle, u32 full, u64 share)
{
	return idle + (u32)((full - idle) * share / SHARE_ONE);
}

static void publish_thermal(struct engine *e, const struct port_thermal *c, u64 share)
{
	reg_write32(e, EMBENG_REG_POWER, e->thermal.power_uw);
	reg_write32(e, EMBENG_REG_TEMPERATURE, (u32)(e->thermal.temperature_uc / 1000));
	reg_write32(e, EMBENG_REG_TEMPERATURE_LIMIT, c->limit_mc);
	reg_write32(e, EMBENG_REG_CLOCK, scale_by_share(c->idle_khz, c->full_khz, share));
	reg_write32(e, EMBENG_REG_CLOCK_LIMIT, c->full_khz);
}

static void update_thermal(struct engine *e, u64 now)
{
	u64 passed = now - e->thermal.time_ns, share;
	struct port_thermal c;

	if (!port_thermal(e->config.host, &c))
		return;
	e->thermal.time_ns = now;
	share = busy_share(e, passed);
	e->thermal.power_uw = scale_by_share(c.idle_uw, c.full_uw, share);
	e->thermal.temperature_uc = next_temperature(&c, e->thermal.temperature_uc,
						     e->thermal.power_uw, passed);
	publish_thermal(e, &c, share);
}

void thermal_begin(struct engine *e)
{
	update_thermal(e, clock_read(e));
}

void thermal_step(struct engine *e)
{
	if (e->now_ns - e->thermal.time_ns >= STEP_NS &&
	    reg_read32(e, EMBENG_REG_BOOT_STATE) == EMBENG_BOOT_RUNNING)
		update_thermal(e, e->now_ns);
}
