// SPDX-License-Identifier: MIT
/* BAR 0. Words that the driver writes may change at any moment. */
#include "internal.h"

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

static const struct {
	u16 offset;
	u8 bytes;
	bool ours;
	u32 reset;
} registers[] = {
#define WRITER_DEVICE true
#define WRITER_DRIVER false
#define REGISTER(name, at, size, writer, value, words) {at, size, WRITER_##writer, value},
	EMBENG_REGISTER_TABLE(REGISTER)
#undef REGISTER
#undef WRITER_DEVICE
#undef WRITER_DRIVER
};

/* The answers to sequences stay: a reset that forgot them would boot or reset again. */
static bool keeps_value(u32 reg)
{
	return reg == EMBENG_REG_BOOT_DONE || reg == EMBENG_REG_CONTROL_DONE ||
	       reg == EMBENG_REG_FIRMWARE_MINIMUM;
}

void registers_reset(struct engine *e)
{
	u32 i;

	for (i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
		if (!registers[i].ours || keeps_value(registers[i].offset))
			continue;
		if (registers[i].bytes == 4)
			reg_write32(e, registers[i].offset, registers[i].reset);
		else
			reg_write64(e, registers[i].offset, registers[i].reset);
	}
	for (i = 0; i < EMBENG_CORES_MAX; i++)
		reg_write64(e, EMBENG_CORE_BUSY(i), 0);
	e->climate.busy_ns = 0;
	pace_reset(e);
	reg_write32(e, EMBENG_REG_INTERFACE, EMBENG_INTERFACE_MAJOR << 16 | EMBENG_INTERFACE_MINOR);
	reg_write32(e, EMBENG_REG_DOORBELL_STRIDE, e->config.doorbell_stride);
	reg_write32(e, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
}

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

int registers_step(struct engine *e)
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
