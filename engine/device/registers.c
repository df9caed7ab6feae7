// SPDX-License-Identifier: MIT
/*
 * Access to the registers in BAR 0. The driver may write its registers at any moment, so every
 * access is one atomic load or store.
 *
 * The functions need no lock. Counters are added to by several threads at once.
 */
#include "device.h"

u32 reg_read32(struct engine *e, u32 reg)
{
	return EMBENG_LOAD_ACQUIRE((u32 *)reg_at(e, reg));
}

u64 reg_read64(struct engine *e, u32 reg)
{
	return EMBENG_LOAD_ACQUIRE((u64 *)reg_at(e, reg));
}

void reg_write32(struct engine *e, u32 reg, u32 value)
{
	EMBENG_STORE_RELEASE((u32 *)reg_at(e, reg), value);
}

void reg_write64(struct engine *e, u32 reg, u64 value)
{
	EMBENG_STORE_RELEASE((u64 *)reg_at(e, reg), value);
}

void reg_count(struct engine *e, u32 reg, u64 add)
{
	__atomic_fetch_add((u64 *)reg_at(e, reg), add, __ATOMIC_RELAXED);
}

void busy_core(struct engine *e, u32 core, u64 passed_ns)
{
	reg_count(e, EMBENG_CORE_BUSY(core), passed_ns);
}
