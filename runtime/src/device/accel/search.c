// SPDX-License-Identifier: MIT
/*
 * Finds the device that a name means, opens its node and asks it what it is, or says in a sentence
 * why that is not possible. The list of all devices is made the same way.
 *
 * The open file belongs to the struct accel of the caller, who closes it after an error too. No
 * lock is needed.
 */
#include <stdio.h>
#include <string.h>

#include "accel.h"
#include "base/error.h"

struct search {
	const char *address; /* NULL: any */
	struct accel_function found;
};

static int match_function(void *arg, const struct accel_function *function)
{
	struct search *search = arg;

	if (search->address && strcmp(search->address, function->address))
		return 0;
	search->found = *function;
	return 1;
}

/* Why a function has no node: nobody loaded the driver, or the driver did not take it. */
static int no_driver(const char *where, const char *address)
{
	char reason[224];

	if (accel_system->refusal(address, reason, sizeof(reason)))
		return fail(-ENXIO,
			    "%s: no driver is bound to it; load it with `modprobe embeng`, as root",
			    where);
	if (!*reason)
		return fail(-ENXIO,
			    "%s: the driver is loaded, but not bound to it; bind it with `echo %s "
			    ">/sys/bus/pci/drivers/embeng/bind`, as root",
			    where, address);
	return fail(strncmp(reason, "firmware ", 9) ? -ENXIO : -EHOSTDOWN,
		    "%s: the driver did not take it: %s; mend that, then bind it with `echo %s "
		    ">/sys/bus/pci/drivers/embeng/bind`, as root",
		    where, reason, address);
}

/*
 * In words why there is none, but for -ENOENT; a node is asked when it is open. A machine that has
 * an engine is not given a soft device instead, because its driver is missing.
 */
static int find_function(const struct name *name, struct accel_function *out)
{
	struct search search = {.address = name->kind == NAME_PCI ? name->where : NULL};
	int ret;

	if (name->kind == NAME_NODE) {
		*out = (struct accel_function){0};
		strcpy(out->node, name->where);
		return 0;
	}
	ret = accel_system->each(false, match_function, &search);
	if (!ret)
		ret = accel_system->each(true, match_function, &search);
	if (ret > 0)
		*out = search.found;
	if (ret)
		return ret < 0 ? ret : 0;
	return name->kind == NAME_ANY
		       ? -ENOENT
		       : fail(-ENODEV, "pci:%s: no embedding engine is there", name->where);
}

/* No node: perhaps because no driver is there. */
static int no_node(const char *node)
{
	struct search search = {0};

	if (accel_system->each(true, match_function, &search) > 0)
		return no_driver(node, search.found.address);
	return fail(-ENODEV, "%s: no such device", node);
}

static int open_failed(const char *node, int error)
{
	if (error == -EACCES || error == -EPERM)
		return fail(error,
			    "%s: permission denied; add yourself to the group that owns it "
			    "(`usermod -aG render USER`, then log in again)",
			    node);
	if (error == -ENOENT || error == -ENXIO || error == -ENODEV)
		return no_node(node);
	return fail(error, "%s: %s", node, strerror(-error));
}

/* Opens @function and asks; a->fd is to be closed also on failure. */
static int inquire_function(struct accel *a, const struct accel_function *function,
			    struct accel_facts *facts)
{
	struct embeng_device_info *info = &a->device.info;

	info->size = sizeof(*info);
	strcpy(info->kind, "accel");
	strcpy(info->driver, function->driver);
	snprintf(info->address, sizeof(info->address), "%s%.26s", *function->address ? "pci:" : "",
		 function->address);
	snprintf(info->name, sizeof(info->name), "%s",
		 *function->node ? function->node : info->address);
	memcpy(a->node, info->name, sizeof(a->node) - 1);
	if (!*function->node)
		return no_driver(info->name, function->address);
	a->fd = accel_system->open(function->node);
	if (a->fd < 0)
		return open_failed(function->node, a->fd);
	return accel_inquire(a->fd, a->node, info, facts);
}

/* Nobody has named the device that has no driver. */
static int offer_soft(int error)
{
	struct embeng_error last = {.size = sizeof(last)};

	embeng_last_error(&last);
	return fail(error, "%.480s. To do without it, name the device \"soft\"", last.text);
}

int accel_reach(struct accel *a, const struct name *name, struct accel_facts *facts)
{
	struct accel_function function;
	int ret = find_function(name, &function);

	if (ret)
		return ret;
	ret = inquire_function(a, &function, facts);
	return ret && name->kind == NAME_ANY && !*function.node ? offer_soft(ret) : ret;
}

int accel_choose_path(struct accel *a, enum name_path path, const struct accel_facts *facts)
{
	bool can_map = (facts->device.flags & EMBENG_ACCEL_CAN_MAP_QUEUES) != 0;

	if (path == NAME_PATH_MAPPED && !can_map)
		return fail(-ENOTSUP,
			    "%s: the driver forbids mapped queues here; leave path=mapped "
			    "out, or open it with path=validated",
			    a->node);
	a->mapped = path != NAME_PATH_VALIDATED && can_map;
	if (path == NAME_PATH_VALIDATED)
		snprintf(a->device.info.name, sizeof(a->device.info.name), "%s,path=validated",
			 a->node);
	return 0;
}

int accel_info(const struct name *name, struct embeng_device_info *info)
{
	struct accel *a = accel_new();
	struct accel_facts facts;
	int ret;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	ret = accel_reach(a, name, &facts);
	ret = ret ? ret : accel_choose_path(a, name->path, &facts);
	*info = a->device.info;
	if (ret != -ENOENT)
		accel_system->describe(info->address, info->description, sizeof(info->description));
	accel_close(&a->device);
	return ret;
}

struct listing {
	int (*fn)(void *arg, const struct embeng_device_info *info);
	void *arg;
};

static int list_one(void *arg, const struct accel_function *function)
{
	const struct listing *listing = arg;
	struct accel *a = accel_new();
	struct embeng_error error = {.size = sizeof(error)};
	struct embeng_device_info info;
	struct accel_facts facts;

	if (!a)
		return fail(-ENOMEM, "no memory for a device");
	if (inquire_function(a, function, &facts)) {
		embeng_last_error(&error);
		snprintf(a->device.info.problem, sizeof(a->device.info.problem), "%.255s",
			 error.text);
	}
	info = a->device.info;
	accel_system->describe(info.address, info.description, sizeof(info.description));
	accel_close(&a->device);
	return listing->fn(listing->arg, &info);
}

int accel_list(int (*fn)(void *arg, const struct embeng_device_info *info), void *arg)
{
	struct listing listing = {fn, arg};
	int ret = accel_system->each(false, list_one, &listing);

	return ret ? ret : accel_system->each(true, list_one, &listing);
}
