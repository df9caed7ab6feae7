// SPDX-License-Identifier: MIT
/*
 * The values of BAR 0 after power on and after a reset. They come from the table of registers in
 * the contract with drivers, so that a register that is added there is reset here.
 *
 * Called with engine->lock held, or before anyone else knows the device.
 */
#include "../queue/internal.h"

static const struct {
	u16 offset;
	u8 bytes;
	bool ours;
	u32 reset;
} registers[] = {
#define WRITER_DEVICE true
#define WRITER_DRIVER false
#define REGISTER(name, at, size, writer, value, words) { at, size, WRITER_##writer, value },
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
	e->thermal.busy_ns = 0;
	timing_reset(e);
	reg_write32(e, EMBENG_REG_INTERFACE, EMBENG_INTERFACE_MAJOR << 16 | EMBENG_INTERFACE_MINOR);
	reg_write32(e, EMBENG_REG_DOORBELL_STRIDE, e->config.doorbell_stride);
	reg_write32(e, EMBENG_REG_BOOT_STATE, EMBENG_BOOT_ROM);
}
