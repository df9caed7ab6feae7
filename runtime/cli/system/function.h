/* SPDX-License-Identifier: MIT */
/* The PCI functions of a machine that have the vendor of embedding engines. */
#ifndef CLI_SYSTEM_FUNCTION_H
#define CLI_SYSTEM_FUNCTION_H

#include "tree.h"

/**
 * struct function - a PCI function
 * @address: domain:bus:device.function
 * @vendor, @device: its ids
 * @driver: driver that it is bound to, or ""
 * @node: name of its node below /dev/accel, or ""
 */
struct function {
	char address[24];
	uint32_t vendor, device;
	char driver[64];
	char node[32];
};

/* Functions in the order of their addresses. */
struct functions {
	struct function *list;
	size_t count;
};

/**
 * functions_find() - find the functions with the vendor of embedding engines, also those whose device
 * id the driver does not know
 * @out: the functions, to be freed by functions_free()
 *
 * Return: 0 or a negative errno; a machine without a PCI bus has none.
 */
int functions_find(struct tree *tree, struct functions *out);

void functions_free(struct functions *functions);

/* True if the driver binds to functions with these ids. */
bool function_is_known(const struct function *function);

/* Writes the path of an attribute of a function. Return: @path. */
const char *function_path(char path[TREE_PATH], const struct function *function,
			  const char *attribute);

/* Writes the path of the folder with a function's sensors. Return: false if there is none. */
bool function_sensors(struct tree *tree, const char *address, char path[TREE_PATH]);

#endif
