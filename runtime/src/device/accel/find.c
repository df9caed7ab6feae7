// SPDX-License-Identifier: MIT
/*
 * Finds the embedding engines of the machine: libudev lists them, and libpci has words for them. It
 * is apart because a test puts another struct accel_system in the place of both libraries.
 *
 * The list lives for one call of accel_find(). No lock is needed.
 */
#include <libudev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pci/pci.h>

#include "../../../text/number.h"
#include "accel.h"
#include "base/error.h"
#include "embeng_regs.h"

struct list {
	struct accel_function *functions;
	size_t count;
};

/* libpci calls it when memory is out, and goes on if it returned. */
static __attribute__((noreturn)) void abort_scan(char *message, ...)
{
	(void)message;
	abort();
}

static void ignore_message(char *message, ...)
{
	(void)message;
}

void accel_words(char *text, size_t size)
{
	struct pci_access *pci = pci_alloc();

	pci->error = abort_scan;
	pci->warning = pci->debug = ignore_message;
	if (!pci_lookup_name(pci, text, (int)size, PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE,
			     EMBENG_PCI_VENDOR, EMBENG_PCI_DEVICE))
		text[0] = 0;
	pci_cleanup(pci);
}

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static int add_function(struct list *list, const char *node, struct udev_device *pci)
{
	struct accel_function *larger = realloc(list->functions,
						(list->count + 1) * sizeof(*larger));
	struct accel_function *function;

	if (!larger)
		return fail(-ENOMEM, "no memory for the list of devices");
	list->functions = larger;
	function = &larger[list->count++];
	copy_text(function->node, sizeof(function->node), node);
	copy_text(function->address, sizeof(function->address), udev_device_get_sysname(pci));
	copy_text(function->driver, sizeof(function->driver), udev_device_get_driver(pci));
	return 0;
}

static int add_node(struct list *list, struct udev_device *accel)
{
	struct udev_device *pci = udev_device_get_parent_with_subsystem_devtype(accel, "pci", NULL);
	const char *driver = pci ? udev_device_get_driver(pci) : NULL;
	const char *node = udev_device_get_devnode(accel);

	if (!driver || strcmp(driver, "embeng") || !node)
		return 0;
	return add_function(list, node, pci);
}

static bool has_attribute(struct udev_device *device, const char *attribute, uint64_t number)
{
	const char *text = udev_device_get_sysattr_value(device, attribute);
	uint64_t value;

	return text && !number_read_code(text, &value) && value == number;
}

static int add_orphan(struct list *list, struct udev_device *pci)
{
	if (udev_device_get_driver(pci) || !has_attribute(pci, "vendor", EMBENG_PCI_VENDOR) ||
	    !has_attribute(pci, "device", EMBENG_PCI_DEVICE))
		return 0;
	return add_function(list, NULL, pci);
}

static int scan_subsystem(struct udev *udev, const char *subsystem, struct list *list,
			  int (*take)(struct list *list, struct udev_device *device))
{
	struct udev_enumerate *all = udev_enumerate_new(udev);
	struct udev_list_entry *entry;
	int ret = 0;

	if (!all)
		return fail(-ENOMEM, "no memory for the list of devices");
	udev_enumerate_add_match_subsystem(all, subsystem);
	udev_enumerate_scan_devices(all);
	udev_list_entry_foreach(entry, udev_enumerate_get_list_entry(all))
	{
		struct udev_device *device = udev_device_new_from_syspath(
			udev, udev_list_entry_get_name(entry));

		if (device && !ret)
			ret = take(list, device);
		udev_device_unref(device);
	}
	udev_enumerate_unref(all);
	return ret;
}

/* By number, so that accel10 does not stand before accel2. */
static int by_node(const void *a, const void *b)
{
	const struct accel_function *x = a, *y = b;
	size_t i = strlen(x->node), j = strlen(y->node);

	return i != j ? (i < j ? -1 : 1) : strcmp(x->node, y->node);
}

int accel_find(bool orphans, accel_each_fn fn, void *arg)
{
	struct udev *udev = udev_new();
	struct list list = {0};
	int ret;

	if (!udev)
		return fail(-ENOMEM, "no memory for the list of devices");
	ret = orphans ? scan_subsystem(udev, "pci", &list, add_orphan)
		      : scan_subsystem(udev, "accel", &list, add_node);
	udev_unref(udev);
	if (list.count)
		qsort(list.functions, list.count, sizeof(*list.functions), by_node);
	for (size_t i = 0; !ret && i < list.count; i++)
		ret = fn(arg, &list.functions[i]);
	free(list.functions);
	return ret;
}
