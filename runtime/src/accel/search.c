// SPDX-License-Identifier: MIT
/* From a name to an open node that was asked what it is, or the reason why not. */
#include <stdio.h>
#include <string.h>

#include "accel.h"
#include "error.h"

struct search {
	const struct name *name;
	struct accel_function found;
	bool known;	 /* @found is it */
	size_t orphans; /* functions of ours without a driver */
};

static int look(void *arg, const struct accel_function *function)
{
	struct search *search = arg;
	const struct name *name = search->name;

	search->orphans += !function->node[0];
	search->known = name->kind == NAME_ANY	  ? function->node[0] != 0
			: name->kind == NAME_NODE ? !strcmp(name->where, function->node)
						  : !strcmp(name->where, function->address);
	if (search->known)
		search->found = *function;
	return search->known;
}

static int no_driver(const char *where)
{
	return fail(-ENXIO,
		    "%s: no driver is bound to it; load it with `modprobe embeng`, as root", where);
}

/* The function of @name: 0, 1 when drivers are missing, or in words why there is none. */
static int find(const struct name *name, struct accel_function *out)
{
	struct search search = {.name = name};
	int ret = accel_system->each(look, &search);

	if (ret < 0)
		return ret;
	if (search.known) {
		*out = search.found;
		return 0;
	}
	if (name->kind == NAME_ANY)
		return -ENOENT;
	if (name->kind == NAME_PCI)
		return fail(-ENODEV,
			    "pci:%s: no embedding engine is there", name->where);
	/* A node that udev does not call ours still says itself what it is. */
	*out = (struct accel_function){0};
	strcpy(out->node, name->where);
	return search.orphans ? 1 : 0;
}

static int open_failed(const char *node, int error, bool orphans)
{
	if (error == -EACCES || error == -EPERM)
		return fail(error,
			    "%s: permission denied; add yourself to the group that owns it "
			    "(`usermod -aG render USER`, then log in again)", node);
	if (error == -ENOENT && orphans)
		return no_driver(node);
	if (error == -ENOENT || error == -ENXIO || error == -ENODEV)
		return fail(-ENODEV, "%s: no such device", node);
	return fail(error, "%s: %s", node, strerror(-error));
}

/* Opens @function and asks; a->fd is to be closed also on failure. */
static int inquire(struct accel *a, const struct accel_function *function, bool orphans,
		   struct accel_facts *facts)
{
	struct embeng_device_info *info = &a->device.info;

	info->size = sizeof(*info);
	strcpy(info->kind, "accel");
	strcpy(info->driver, function->driver);
	strcpy(info->description, function->description);
	snprintf(info->address, sizeof(info->address), "%s%.26s", *function->address ? "pci:" : "",
		 function->address);
	snprintf(info->name, sizeof(info->name), "%s",
		 *function->node ? function->node : info->address);
	memcpy(a->node, info->name, sizeof(a->node) - 1);
	if (!*function->node)
		return no_driver(info->name);
	a->fd = accel_system->open(function->node);
	if (a->fd < 0)
		return open_failed(function->node, a->fd, orphans);
	return accel_inquire(a->fd, a->node, info, facts);
}

int accel_reach(struct accel *a, const struct name *name, struct accel_facts *facts)
{
	struct accel_function function;
	int ret = find(name, &function);

	return ret < 0 ? ret : inquire(a, &function, ret > 0, facts);
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
	if (inquire(a, function, true, &facts)) {
		embeng_last_error(&error);
		snprintf(a->device.info.problem, sizeof(a->device.info.problem), "%.255s",
			 error.text);
	}
	info = a->device.info;
	accel_close(&a->device);
	return listing->fn(listing->arg, &info);
}

int accel_list(int (*fn)(void *arg, const struct embeng_device_info *info), void *arg)
{
	struct listing listing = {fn, arg};

	return accel_system->each(list_one, &listing);
}
