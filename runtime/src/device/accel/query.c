// SPDX-License-Identifier: MIT
/*
 * Asks the driver and the device what they are: versions, firmware, limits and counters. A driver
 * or device that does not fit this library is refused here with a sentence that says what to do.
 *
 * The answers go into memory of the caller; any thread may call.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"
#include "device/status_text.h"
#include "embeng_regs.h"

int accel_query(int fd, uint32_t what, void *data, uint32_t size)
{
	struct embeng_accel_query query = {
		.what = what, .size = size, .data = (uint64_t)(uintptr_t)data};

	return accel_system->ioctl(fd, DRM_IOCTL_EMBENG_QUERY, &query);
}

static int check_version(const struct drm_version *version, const char *node)
{
	if (version->version_major == EMBENG_ACCEL_MAJOR &&
	    version->version_minor >= EMBENG_ACCEL_MINOR)
		return 0;
	return fail(-ENOTSUP,
		    "%s: the driver speaks version %d.%d, this library %d.%d; install a driver "
		    "and a library that were built together",
		    node, version->version_major, version->version_minor, EMBENG_ACCEL_MAJOR,
		    EMBENG_ACCEL_MINOR);
}

static int check_driver(int fd, const char *node, struct embeng_device_info *info)
{
	char name[sizeof(info->driver)] = "";
	struct drm_version version = {.name = name, .name_len = sizeof(name) - 1};
	int ret = accel_system->ioctl(fd, DRM_IOCTL_VERSION, &version);

	if (ret == -ENODEV)
		return fail(ret, "%s: the device is gone", node);
	if (ret)
		return fail(-ENODEV,
			    "%s: this is not an embedding engine, it does not say what its "
			    "driver is",
			    node);
	if (strcmp(name, "embeng"))
		return fail(-ENODEV,
			    "%s: this is not an embedding engine but a device of the "
			    "driver \"%s\"",
			    node, name);
	strcpy(info->driver, name);
	return check_version(&version, node);
}

static const char *boot_state_text(uint32_t state)
{
	static const char *const texts[] = {"reset", "rom", "loading", "running", "failed"};

	return state < sizeof(texts) / sizeof(*texts) ? texts[state] : "unknown";
}

static int say_wedged(const char *node, const struct embeng_accel_device *device,
		      const struct embeng_device_info *info)
{
	const char *address = info->address + strlen("pci:");

	return fail(-EHOSTDOWN,
		    "%s: it did not come back from a reset (firmware %s%s%s); bind the driver anew "
		    "with `echo %s >/sys/bus/pci/drivers/embeng/unbind` and the same into bind, as "
		    "root, or turn the machine off",
		    node, boot_state_text(device->boot_state), device->boot_error ? ": " : "",
		    device->boot_error ? boot_error_text(device->boot_error) : "", address);
}

static int check_boot(const char *node, const struct embeng_accel_device *device)
{
	if (device->boot_state == EMBENG_BOOT_RUNNING)
		return 0;
	if (device->boot_error == EMBENG_BOOT_ERROR_SELF_TEST)
		return fail(-EHOSTDOWN,
			    "%s: its firmware did not boot: self-test %u failed (byte %" PRIu64
			    " of the image); the device is faulty, or the image is not for it",
			    node, device->boot_error_index, (uint64_t)device->boot_error_offset);
	if (device->boot_error)
		return fail(-EHOSTDOWN,
			    "%s: its firmware did not boot: %s (error %u, byte %" PRIu64
			    " of the image); install the image of this version, then reset the "
			    "device",
			    node, boot_error_text(device->boot_error), device->boot_error,
			    (uint64_t)device->boot_error_offset);
	return fail(-EHOSTDOWN,
		    "%s: it runs no firmware (state %s); see whether the image is where the "
		    "driver looks for it, then reset the device",
		    node, boot_state_text(device->boot_state));
}

static int check_interface(const char *node, const struct embeng_caps *caps)
{
	if (caps->interface_major == EMBENG_INTERFACE_MAJOR)
		return 0;
	return fail(-ENOTSUP,
		    "%s: the device has interface %u.%u, this library speaks %u.%u; update "
		    "the firmware or the library",
		    node, caps->interface_major, caps->interface_minor, EMBENG_INTERFACE_MAJOR,
		    EMBENG_INTERFACE_MINOR);
}

static void note_device(const struct embeng_accel_device *device, struct embeng_device_info *info)
{
	strcpy(info->kind, "accel");
	snprintf(info->state, sizeof(info->state), "%s", boot_state_text(device->boot_state));
	snprintf(info->address, sizeof(info->address), "pci:%04x:%02x:%02x.%u",
		 device->pci_domain & 0xffff, device->pci_bus & 0xff, device->pci_device & 0x1f,
		 device->pci_function & 7);
	info->firmware_version = device->firmware_version;
}

static void note_caps(const struct accel_facts *facts, struct embeng_device_info *info)
{
	const struct embeng_caps *caps = &facts->caps;

	info->interface_major = caps->interface_major;
	info->interface_minor = caps->interface_minor;
	info->cores = caps->cores;
	info->step_depth = caps->step_depth;
	info->replicas = caps->replicas;
	info->dim = caps->dim;
	info->tables = caps->tables;
	info->features = caps->features;
	/* A feature that the driver forbids is not there for programs. */
	if (!(facts->device.flags & EMBENG_ACCEL_CAN_MAP_QUEUES))
		info->features &= ~(uint64_t)EMBENG_CAP_MAPPED_QUEUES;
	info->table_memory = caps->table_memory;
	info->command_bytes = caps->command_bytes;
}

int accel_inquire(int fd, const char *node, struct embeng_device_info *info,
		  struct accel_facts *facts)
{
	struct embeng_accel_device *device = &facts->device;
	int ret = check_driver(fd, node, info);

	if (ret)
		return ret;
	ret = accel_query(fd, EMBENG_ACCEL_QUERY_DEVICE, device, sizeof(*device));
	if (ret)
		return fail(ret, "%s: the driver does not describe the device: %s", node,
			    strerror(-ret));
	note_device(device, info);
	ret = device->flags & EMBENG_ACCEL_WEDGED ? say_wedged(node, device, info)
						  : check_boot(node, device);
	if (ret)
		return ret;
	ret = accel_query(fd, EMBENG_ACCEL_QUERY_CAPS, &facts->caps, sizeof(facts->caps));
	if (ret)
		return fail(ret, "%s: the driver does not say what the device can do: %s", node,
			    strerror(-ret));
	note_caps(facts, info);
	return check_interface(node, &facts->caps);
}

/* Where a counter stands in the answer of QUERY_COUNTERS; false for any other register. */
static bool counter_place(enum embeng_register reg, size_t *place)
{
	size_t n = 0;

#define PLACE(name, offset, bytes, writer, reset, words) \
	if ((offset) >= EMBENG_REG_COUNT_COMMANDS) { \
		*place = n++; \
		if ((offset) == reg) \
			return true; \
	}
	EMBENG_REGISTER_TABLE(PLACE)
#undef PLACE
	return false;
}

uint64_t accel_read_register(struct device *d, enum embeng_register reg)
{
	uint64_t counters[64] = {0};
	size_t place;

	if (!counter_place(reg, &place) ||
	    accel_query(accel_of(d)->fd, EMBENG_ACCEL_QUERY_COUNTERS, counters, sizeof(counters)))
		return 0;
	return counters[place];
}
