// SPDX-License-Identifier: MIT
/*
 * Listens to the kernel's uevents by libudev, for those that the driver sends when it takes a rung of
 * the recovery ladder.
 *
 * They are taken from the kernel and not from udevd, which a container or a first boot may not run.
 * A listener belongs to one thread.
 */
#include "uevents.h"

#include <libudev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng_accel.h"

#include "../../text/number.h"

struct uevents {
	struct udev *udev;
	struct udev_monitor *monitor;
};

void uevents_close(struct uevents *uevents)
{
	if (!uevents)
		return;
	udev_monitor_unref(uevents->monitor);
	udev_unref(uevents->udev);
	free(uevents);
}

struct uevents *uevents_open(void)
{
	struct uevents *uevents = calloc(1, sizeof(*uevents));

	if (!uevents)
		return NULL;
	uevents->udev = udev_new();
	if (uevents->udev)
		uevents->monitor = udev_monitor_new_from_netlink(uevents->udev, "kernel");
	if (uevents->monitor &&
	    udev_monitor_filter_add_match_subsystem_devtype(uevents->monitor, "accel", NULL) >= 0 &&
	    udev_monitor_enable_receiving(uevents->monitor) >= 0)
		return uevents;
	uevents_close(uevents);
	return NULL;
}

static void copy_property(struct udev_device *device, const char *name, char *word, size_t size)
{
	const char *value = udev_device_get_property_value(device, name);

	snprintf(word, size, "%s", value ? value : "");
}

static const char *find_cause_words(const char *cause)
{
	static const struct {
		const char *cause, *words;
	} causes[] = {
#define CAUSE(name, value, cause, words) {cause, words},
		EMBENG_ACCEL_CAUSE_TABLE(CAUSE)
#undef CAUSE
	};

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (!strcmp(causes[i].cause, cause))
			return causes[i].words;
	}
	return "a cause that this version does not know";
}

static bool read_uevent(struct udev_device *device, struct uevent *out)
{
	struct udev_device *function = udev_device_get_parent_with_subsystem_devtype(device, "pci",
										     NULL);
	char reset[24];

	*out = (struct uevent){0};
	copy_property(device, "EMBENG_RUNG", out->rung, sizeof(out->rung));
	copy_property(device, "EMBENG_CAUSE", out->cause, sizeof(out->cause));
	copy_property(device, "EMBENG_RESET", reset, sizeof(reset));
	out->words = find_cause_words(out->cause);
	number_read_code(reset, &out->reset);
	if (function)
		snprintf(out->address, sizeof(out->address), "pci:%s",
			 udev_device_get_sysname(function));
	return *out->rung;
}

bool uevents_wait(struct uevents *uevents, int ms, struct uevent *out)
{
	struct pollfd poller = {.fd = -1, .events = POLLIN};
	struct udev_device *device;
	bool found;

	if (uevents)
		poller.fd = udev_monitor_get_fd(uevents->monitor);
	if (poll(&poller, 1, ms) <= 0)
		return false;
	device = udev_monitor_receive_device(uevents->monitor);
	if (!device)
		return false;
	found = read_uevent(device, out);
	udev_device_unref(device);
	return found;
}
