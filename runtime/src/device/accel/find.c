// SPDX-License-Identifier: MIT
/*
 * Finds the embedding engines of the machine, and the words of udev's hardware database for them. It
 * is apart because tests put another struct accel_system, or functions of their own, in the place of
 * libudev.
 *
 * The list lives for one call of accel_find(). One thread at a time is in libudev: its hash tables
 * share a key, which each table that grows makes anew. A fork waits until no thread is in it, so that
 * the child can use it, too. The lock is held while libudev works, and not while an accel_each_fn does.
 */
#include <libudev.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../text/number.h"
#include "accel.h"
#include "base/error.h"
#include "embeng_regs.h"

struct list {
	struct accel_function *functions;
	size_t count;
};

static pthread_mutex_t udev_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t udev_once = PTHREAD_ONCE_INIT;

static void lock_udev(void)
{
	pthread_mutex_lock(&udev_lock);
}

static void unlock_udev(void)
{
	pthread_mutex_unlock(&udev_lock);
}

static void watch_udev_forks(void)
{
	pthread_atfork(lock_udev, unlock_udev, unlock_udev);
}

/* From here to end_udev() this thread alone is in libudev. */
static struct udev *begin_udev(void)
{
	pthread_once(&udev_once, watch_udev_forks);
	lock_udev();
	return udev_new();
}

static void end_udev(struct udev *udev)
{
	udev_unref(udev);
	unlock_udev();
}

static void copy_text(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static const char *find_word(struct udev_list_entry *properties, const char *name)
{
	return udev_list_entry_get_value(udev_list_entry_get_by_name(properties, name));
}

static bool read_code_of(struct udev_device *device, const char *attribute, uint64_t *number)
{
	const char *text = udev_device_get_sysattr_value(device, attribute);

	return text && !number_read_code(text, number);
}

/* The PCI device id of a function, which says its generation; that of the first if nobody knows. */
static unsigned int find_generation(struct udev *udev, const char *address)
{
	const char *sysname = address + strlen("pci:");
	struct udev_device *pci = NULL;
	uint64_t device;

	if (udev && *address)
		pci = udev_device_new_from_subsystem_sysname(udev, "pci", sysname);
	if (!pci || !read_code_of(pci, "device", &device))
		device = EMBENG_PCI_DEVICE_EMULATED;
	udev_device_unref(pci);
	return (unsigned int)device;
}

void accel_words(const char *address, char *text, size_t size)
{
	struct udev *udev = begin_udev();
	struct udev_hwdb *database = udev ? udev_hwdb_new(udev) : NULL;
	struct udev_list_entry *properties = NULL;
	unsigned int device = find_generation(udev, address);
	const char *vendor, *model;
	char id[32];

	snprintf(id, sizeof(id), "pci:v%08Xd%08Xsv", EMBENG_PCI_VENDOR, device);
	if (database)
		properties = udev_hwdb_get_properties_list_entry(database, id, 0);
	vendor = find_word(properties, "ID_VENDOR_FROM_DATABASE");
	model = find_word(properties, "ID_MODEL_FROM_DATABASE");
	if (vendor && model)
		snprintf(text, size, "%s %s", vendor, model);
	else if (vendor)
		snprintf(text, size, "%s Device %04x", vendor, device);
	else
		snprintf(text, size, "Device %04x:%04x", EMBENG_PCI_VENDOR, device);
	udev_hwdb_unref(database);
	end_udev(udev);
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

static bool is_generation(uint64_t device)
{
	switch (device) {
#define KNOWN_ID(name, id, words) case id:
		EMBENG_PCI_DEVICE_TABLE(KNOWN_ID)
		return true;
#undef KNOWN_ID
	}
	return false;
}

static int add_orphan(struct list *list, struct udev_device *pci)
{
	uint64_t vendor, device;

	if (udev_device_get_driver(pci) || !read_code_of(pci, "vendor", &vendor) ||
	    !read_code_of(pci, "device", &device) || vendor != EMBENG_PCI_VENDOR ||
	    !is_generation(device))
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
	struct udev *udev = begin_udev();
	struct list list = {0};
	int ret;

	if (!udev)
		ret = fail(-ENOMEM, "no memory for the list of devices");
	else
		ret = orphans ? scan_subsystem(udev, "pci", &list, add_orphan)
			      : scan_subsystem(udev, "accel", &list, add_node);
	end_udev(udev);
	if (list.count)
		qsort(list.functions, list.count, sizeof(*list.functions), by_node);
	for (size_t i = 0; !ret && i < list.count; i++)
		ret = fn(arg, &list.functions[i]);
	free(list.functions);
	return ret;
}
