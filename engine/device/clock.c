// SPDX-License-Identifier: MIT
/*
 * The device's clock: e->now_ns, the time when somebody last looked. Reading the host's clock costs
 * more than most looks at a queue, so those take what is there. Threads that read the host's clock
 * without engine->lock hand the time in afterwards, and an older one never sets the clock back.
 *
 * Both functions are called with engine->lock held.
 */
#include "device.h"

void clock_saw(struct engine *e, u64 now)
{
	if (e->now_ns < now)
		e->now_ns = now;
}

u64 clock_read(struct engine *e)
{
	clock_saw(e, port_now_ns());
	return e->now_ns;
}
