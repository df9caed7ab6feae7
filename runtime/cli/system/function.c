// SPDX-License-Identifier: MIT
/*
 * Finds embedding engines on the PCI bus by the files of sysfs. The library has a list of devices
 * of its own, by libudev; this one also works on a recorded tree, and it has functions to which no
 * driver binds.
 *
 * The list belongs to the caller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng_regs.h"

#include "function.h"

const char *function_path(char path[TREE_PATH], const struct function *function,
			  const char *attribute)
{
	return tree_path(path, "/sys/bus/pci/devices/%s/%s", function->address, attribute);
}

bool function_is_known(const struct function *function)
{
	if (function->vendor != EMBENG_PCI_VENDOR)
		return false;
	switch (function->device) {
#define KNOWN_ID(name, id, words) case id:
		EMBENG_PCI_DEVICE_TABLE(KNOWN_ID)
		return true;
#undef KNOWN_ID
	}
	return false;
}

static bool is_function_address(const char *name)
{
	unsigned int domain, bus, device, number;
	int length = 0;

	return strlen(name) < sizeof(((struct function *)0)->address) &&
	       strspn(name, "0123456789abcdef:.") == strlen(name) &&
	       sscanf(name, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &number, &length) == 4 &&
	       !name[length];
}

static uint32_t read_id(struct tree *tree, const struct function *function, const char *attribute)
{
	char path[TREE_PATH];
	uint64_t id;

	if (tree_number(tree, function_path(path, function, attribute), &id) || id > 0xffff)
		return UINT32_MAX;
	return (uint32_t)id;
}

/* The node's name is that of a folder in the function's folder "accel". */
static void find_node(struct tree *tree, struct function *function)
{
	char path[TREE_PATH];
	struct tree_names names;

	if (tree_list(tree, function_path(path, function, "accel"), &names))
		return;
	for (size_t i = 0; i < names.count; i++) {
		if (strncmp(names.list[i], "accel", 5) ||
		    strlen(names.list[i]) >= sizeof(function->node))
			continue;
		strcpy(function->node, names.list[i]);
		tree_kind(tree, tree_path(path, "/sys/bus/pci/devices/%s/accel/%s",
					  function->address, names.list[i]));
		break;
	}
	tree_names_free(&names);
}

static int append_function(struct functions *functions, const struct function *function)
{
	struct function *larger = realloc(functions->list,
					  (functions->count + 1) * sizeof(*larger));

	if (!larger)
		return -ENOMEM;
	functions->list = larger;
	larger[functions->count++] = *function;
	return 0;
}

static int take_function(struct tree *tree, const char *name, struct functions *functions)
{
	struct function function = {0};
	char path[TREE_PATH];

	if (!is_function_address(name))
		return 0;
	strcpy(function.address, name);
	function.vendor = read_id(tree, &function, "vendor");
	if (function.vendor != EMBENG_PCI_VENDOR)
		return 0;
	function.device = read_id(tree, &function, "device");
	tree_link(tree, function_path(path, &function, "driver"), function.driver,
		  sizeof(function.driver));
	find_node(tree, &function);
	return append_function(functions, &function);
}

int functions_find(struct tree *tree, struct functions *out)
{
	struct tree_names names;
	int err = tree_list(tree, "/sys/bus/pci/devices", &names);

	*out = (struct functions){0};
	if (err)
		return err == -ENOENT ? 0 : err;
	for (size_t i = 0; !err && i < names.count; i++)
		err = take_function(tree, names.list[i], out);
	tree_names_free(&names);
	if (err)
		functions_free(out);
	return err;
}

void functions_free(struct functions *functions)
{
	free(functions->list);
	*functions = (struct functions){0};
}

bool function_sensors(struct tree *tree, const char *address, char path[TREE_PATH])
{
	char folder[TREE_PATH];
	struct tree_names names;
	bool found = false;

	tree_path(folder, "/sys/bus/pci/devices/%s/hwmon", address);
	if (tree_list(tree, folder, &names))
		return false;
	for (size_t i = 0; i < names.count && !found; i++)
		found = !strncmp(names.list[i], "hwmon", 5) &&
			*tree_path(path, "%s/%s", folder, names.list[i]);
	tree_names_free(&names);
	return found;
}
