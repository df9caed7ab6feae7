// SPDX-License-Identifier: MIT
/*
 * Access to the registers of the soft device. Its engine runs in other threads, so each access is
 * one atomic load or store.
 *
 * No lock is needed.
 */
#include "soft.h"

static void *register_at(struct soft *s, enum embeng_register reg)
{
	return s->registers + reg;
}

uint32_t soft_read32(struct soft *s, enum embeng_register reg)
{
	return EMBENG_LOAD_ACQUIRE((uint32_t *)register_at(s, reg));
}

uint64_t soft_read64(struct soft *s, enum embeng_register reg)
{
	return EMBENG_LOAD_ACQUIRE((uint64_t *)register_at(s, reg));
}

void soft_write32(struct soft *s, enum embeng_register reg, uint32_t value)
{
	EMBENG_STORE_RELEASE((uint32_t *)register_at(s, reg), value);
}

void soft_write64(struct soft *s, enum embeng_register reg, uint64_t value)
{
	EMBENG_STORE_RELEASE((uint64_t *)register_at(s, reg), value);
}
