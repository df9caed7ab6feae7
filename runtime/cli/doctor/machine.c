// SPDX-License-Identifier: MIT
/*
 * Reads what checks of several groups look at: words of the kernel's command line, the driver's
 * folder, and attributes of a device. Nothing is kept.
 */
#include "machine.h"

#include <string.h>

bool has_word_in(const char *list, const char *word)
{
	const size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length) {
		if ((at == list || strchr(" \t\n", at[-1])) && strchr(" \t\n", at[length]))
			return true;
	}
	return false;
}

bool read_boot_option(const struct machine *m, const char *name, char *value, size_t size)
{
	const size_t length = strlen(name);
	bool found = false;

	for (const char *at = m->cmdline; (at = strstr(at, name)); at += length) {
		size_t bytes = strcspn(at + length, " \t\n");

		if ((at > m->cmdline && !strchr(" \t\n", at[-1])) || at[length] != '=')
			continue;
		bytes = bytes < size ? bytes : size;
		memcpy(value, at + length + 1, bytes - 1);
		value[bytes - 1] = '\0';
		found = true;
	}
	return found;
}

bool is_driver_loaded(const struct machine *m)
{
	return tree_kind(m->tree, "/sys/module/embeng") == TREE_FOLDER;
}

bool read_device_line(const struct machine *m, const struct function *device, const char *attribute,
		      char *line, size_t size)
{
	char path[TREE_PATH];

	return !tree_line(m->tree, function_path(path, device, attribute), line, size);
}

bool read_device_number(const struct machine *m, const struct function *device,
			const char *attribute, uint64_t *value)
{
	char path[TREE_PATH];

	return !tree_number(m->tree, function_path(path, device, attribute), value);
}
