// SPDX-License-Identifier: MIT
/*
 * Registers and resets of a device behind the driver, for the commands of `embeng` that bring a
 * board up. No model is opened for it, so the functions are apart from open.c.
 *
 * Each call opens the device, does its work and closes it again. No lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"
#include "embeng_regs.h"

static void copy_register(char *to, const char *from, uint32_t offset, uint32_t bytes)
{
	if (bytes == 4) {
		uint32_t value = *(const volatile uint32_t *)(from + offset);

		memcpy(to + offset, &value, sizeof(value));
	} else {
		uint64_t value = *(const volatile uint64_t *)(from + offset);

		memcpy(to + offset, &value, sizeof(value));
	}
}

static void copy_words(char *to, const char *from, uint32_t offset, uint32_t bytes)
{
	for (uint32_t at = offset; at < offset + bytes; at += 8)
		copy_register(to, from, at, 8);
}

/* A record that changed meanwhile loses its number, as the device does it. */
static void copy_event(char *to, const char *from, uint32_t offset)
{
	uint32_t number = EMBENG_LOAD_ACQUIRE((const uint32_t *)(from + offset));

	copy_words(to, from, offset, sizeof(struct embeng_event));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (EMBENG_LOAD_ACQUIRE((const uint32_t *)(from + offset)) != number)
		number = 0;
	memcpy(to + offset, &number, sizeof(number));
}

static void copy_log(char *to, const char *from)
{
	uint32_t records = EMBENG_EVENT_LOG + offsetof(struct embeng_event_log, events);

	copy_words(to, from, EMBENG_EVENT_LOG, offsetof(struct embeng_event_log, events));
	for (uint32_t i = 0; i < EMBENG_EVENTS; i++)
		copy_event(to, from, records + i * (uint32_t)sizeof(struct embeng_event));
}

/* Copies each register in its own width; the words between registers need not exist. */
static void copy_page(char *to, const char *from)
{
	memset(to, 0, EMBENG_REGISTERS_SIZE);
	copy_words(to, from, EMBENG_CORE_BUSY(0), 8 * EMBENG_CORES_MAX);
	copy_log(to, from);
#define COPY(name, offset, bytes, writer, reset, words) copy_register(to, from, offset, bytes);
	EMBENG_REGISTER_TABLE(COPY)
#undef COPY
}

static int copy_mapped(int fd, uint64_t offset, const char *node, char *page)
{
	char *registers = accel_system->map(fd, offset, EMBENG_REGISTERS_SIZE, false);

	if (!registers)
		return fail(-errno, "%s: its registers cannot be mapped: %s", node,
			    strerror(errno));
	copy_page(page, registers);
	accel_system->unmap(registers, EMBENG_REGISTERS_SIZE);
	return 0;
}

/* The function's registers as the PCI core has them; a descriptor, or in words why not. */
static int open_resource(const struct accel *a)
{
	const char *address = a->device.info.address;
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource%d", address + strlen("pci:"),
		 EMBENG_BAR_REGISTERS);
	fd = accel_system->open(path);
	if (fd == -EACCES || fd == -EPERM)
		return fail(-EPERM,
			    "%s: only an administrator may use its registers; run this as root",
			    address);
	return fd < 0 ? fail(fd, "%s: %s", path, strerror(-fd)) : fd;
}

static int read_resource(const struct accel *a, char *page)
{
	int fd = open_resource(a), ret;

	if (fd < 0)
		return fd;
	ret = copy_mapped(fd, 0, a->device.info.name, page);
	accel_system->close(fd);
	return ret;
}

static int read_node(const struct accel *a, const struct accel_facts *facts, char *page)
{
	if (!facts->device.registers)
		return fail(-EPERM, "%s: using its registers needs CAP_SYS_RAWIO; run this as root",
			    a->node);
	return copy_mapped(a->fd, facts->device.registers, a->node, page);
}

/* A node whose device runs no firmware has registers all the same. */
static bool is_reached(const struct accel *a, int error)
{
	return a->fd >= 0 && (!error || error == -EHOSTDOWN);
}

static bool is_unbound(const struct accel *a, int error)
{
	return a->fd < 0 && *a->device.info.address && (error == -ENXIO || error == -EHOSTDOWN);
}

int accel_registers_read(const struct name *name, char *page)
{
	struct accel *a = accel_new();
	struct accel_facts facts = {0};
	int ret;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	ret = accel_reach(a, name, &facts);
	if (is_reached(a, ret))
		ret = read_node(a, &facts, page);
	else if (is_unbound(a, ret))
		ret = read_resource(a, page);
	accel_close(&a->device);
	return ret;
}

static int write_resource(const struct accel *a, uint32_t offset, uint32_t bytes, uint64_t value)
{
	int fd = open_resource(a);
	char *registers;

	if (fd < 0)
		return fd;
	registers = accel_system->map(fd, 0, EMBENG_REGISTERS_SIZE, true);
	accel_system->close(fd);
	if (!registers)
		return fail(-ENOTSUP,
			    "%s: the kernel does not let its registers be written (%s); "
			    "unbind the driver first",
			    a->device.info.name, strerror(errno));
	if (bytes == 4)
		*(volatile uint32_t *)(registers + offset) = (uint32_t)value;
	else
		*(volatile uint64_t *)(registers + offset) = value;
	accel_system->unmap(registers, EMBENG_REGISTERS_SIZE);
	return 0;
}

int accel_register_write(const struct name *name, uint32_t offset, uint32_t bytes, uint64_t value)
{
	struct accel *a = accel_new();
	struct accel_facts facts;
	int ret;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	ret = accel_reach(a, name, &facts);
	if (is_reached(a, ret) || is_unbound(a, ret))
		ret = write_resource(a, offset, bytes, value);
	accel_close(&a->device);
	return ret;
}

/* A device that did not come back says why, where it can. */
static int explain_reset(struct accel *a, int error)
{
	struct accel_facts facts;
	int why = error == -ENODEV ? accel_inquire(a->fd, a->node, &a->device.info, &facts) : 0;

	return why == -EHOSTDOWN ? why : accel_failed(a, error, "resetting");
}

int accel_reset(const struct name *name, enum embeng_reset what)
{
	struct embeng_accel_reset reset = {.rung = what == EMBENG_RESET_FUNCTION
							   ? EMBENG_ACCEL_RESET_FUNCTION
							   : EMBENG_ACCEL_RESET_ENGINE};
	struct accel *a = accel_new();
	struct accel_facts facts = {0};
	int ret;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	ret = accel_reach(a, name, &facts);
	if (is_reached(a, ret) && !(facts.device.flags & EMBENG_ACCEL_WEDGED)) {
		ret = accel_system->ioctl(a->fd, DRM_IOCTL_EMBENG_RESET, &reset);
		if (ret == -EACCES || ret == -EPERM)
			ret = fail(ret,
				   "%s: a reset, which takes the tables of every "
				   "program, needs CAP_SYS_ADMIN; run this as root",
				   a->node);
		else if (ret)
			ret = explain_reset(a, ret);
	}
	accel_close(&a->device);
	return ret;
}
