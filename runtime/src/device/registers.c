// SPDX-License-Identifier: MIT
/*
 * Registers and reset of a device by its name, without a model. The soft device and devices behind
 * the driver differ in each, which is decided here.
 *
 * Each call opens the device and closes it again. No lock is needed.
 */
#include <inttypes.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"
#include "device/soft/soft.h"
#include "embeng_regs.h"

static void read_words(struct device *device, char *page, uint32_t offset, uint32_t bytes)
{
	uint64_t value;

	for (uint32_t at = offset; at < offset + bytes; at += 8) {
		value = device->ops->read_register(device, at);
		memcpy(page + at, &value, sizeof(value));
	}
}

static int read_soft(const struct name *name, char *page)
{
	const struct device_log nowhere = {0};
	struct device *device;
	uint64_t value;
	int ret = soft_open(name, 1, &nowhere, &device);

	if (ret)
		return ret;
	memset(page, 0, EMBENG_REGISTERS_BYTES);
#define READ(reg, offset, bytes, writer, reset, words) \
	value = device->ops->read_register(device, offset); \
	memcpy(page + (offset), &value, bytes);
	EMBENG_REGISTER_TABLE(READ)
#undef READ
	read_words(device, page, EMBENG_CORE_BUSY(0), 8 * EMBENG_CORES_MAX);
	read_words(device, page, EMBENG_EVENT_LOG, sizeof(struct embeng_event_log));
	device->ops->close(device);
	return 0;
}

/* Bring-up is never done on another device than was asked for. */
static int no_engine(void)
{
	return fail(-ENODEV, "no embedding engine is on this machine's PCI bus; a soft device is "
			     "only looked at when it is named, \"soft\"");
}

int embeng_registers_read(const char *name, void *page)
{
	struct name parsed;
	int ret;

	if (!page)
		return fail(-EINVAL, "embeng_registers_read: page must be given");
	ret = name_parse(name, &parsed);
	if (ret)
		return ret;
	if (parsed.kind == NAME_SOFT)
		return read_soft(&parsed, page);
	ret = accel_registers_read(&parsed, page);
	return ret == -ENOENT ? no_engine() : ret;
}

enum writer { DEVICE, DRIVER };

/* Bytes of a register that may be written, 0 for another's. */
static uint32_t width_of(uint32_t at)
{
	switch (at) {
#define WIDTH(name, offset, bytes, writer, reset, words) \
	case offset: \
		return (writer) == DRIVER ? (bytes) : 0;
		EMBENG_REGISTER_TABLE(WIDTH)
#undef WIDTH
	}
	return 0;
}

int embeng_register_write(const char *name, uint32_t offset, uint64_t value)
{
	uint32_t bytes = width_of(offset);
	struct name parsed;
	int ret = name_parse(name, &parsed);

	if (ret)
		return ret;
	if (!bytes)
		return fail(-EINVAL, "offset 0x%x: no register that a driver writes stands there",
			    offset);
	if (bytes == 4 && value > UINT32_MAX)
		return fail(-ERANGE, "offset 0x%x: value 0x%" PRIx64 " does not fit its 4 bytes",
			    offset, value);
	if (parsed.kind == NAME_SOFT)
		return fail(-ENOTSUP, "a soft device is part of the program that opened it; its "
				      "registers cannot be written from outside");
	ret = accel_register_write(&parsed, offset, bytes, value);
	return ret == -ENOENT ? no_engine() : ret;
}

int embeng_device_reset(const char *name, enum embeng_reset what)
{
	struct name parsed;
	int ret = name_parse(name, &parsed);

	if (ret)
		return ret;
	if (what != EMBENG_RESET_ENGINE && what != EMBENG_RESET_FUNCTION)
		return fail(-EINVAL, "embeng_device_reset: reset %d; there are ENGINE and FUNCTION",
			    (int)what);
	if (parsed.kind == NAME_SOFT)
		return fail(-ENOTSUP, "a soft device is part of the program that opened it; it is "
				      "reset by opening it again");
	ret = accel_reset(&parsed, what);
	return ret == -ENOENT ? no_engine() : ret;
}
