// SPDX-License-Identifier: MIT
/*
 * Reads what checks of several groups look at: words of the kernel's command line, the driver's
 * folder, and attributes of a device. Nothing is kept.
 */
#include "machine.h"

#include <stdio.h>
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

/* A blank in quotes does not end a word. The quotes are around the word or around its value. */
bool next_boot_word(const char **at, struct boot_word *word)
{
	const char *c = *at + strspn(*at, " \t\n"), *equals = NULL, *end;
	bool quoted = false;

	if (!*c)
		return false;
	word->name = c + (*c == '"');
	for (end = c; *end && (quoted || !strchr(" \t\n", *end)); end++) {
		quoted ^= *end == '"';
		if (*end == '=' && !equals)
			equals = end;
	}
	*at = end;
	if (end > word->name && end[-1] == '"')
		end--;
	word->name_length = (size_t)((equals ? equals : end) - word->name);
	word->value = equals ? equals + 1 : end;
	word->value += word->value < end && *word->value == '"';
	word->length = word->value < end ? (size_t)(end - word->value) : 0;
	return true;
}

bool is_boot_word(const struct boot_word *word, const char *name)
{
	size_t i;

	for (i = 0; i < word->name_length && name[i]; i++) {
		char found = word->name[i] == '-' ? '_' : word->name[i];

		if (found != name[i])
			return false;
	}
	return i == word->name_length && !name[i];
}

bool read_boot_option(const struct machine *m, const char *name, char *value, size_t size)
{
	const char *at = m->cmdline;
	struct boot_word word;
	bool found = false;

	while (next_boot_word(&at, &word)) {
		size_t bytes = word.length < size ? word.length : size - 1;

		if (!is_boot_word(&word, name))
			continue;
		memcpy(value, word.value, bytes);
		value[bytes] = '\0';
		found = true;
	}
	return found;
}

/* The first namespace maps every number to itself. */
bool has_user_namespace(const struct machine *m)
{
	char line[TREE_LINE];
	unsigned int inside, outside, count;

	return !tree_line(m->tree, "/proc/self/uid_map", line, sizeof(line)) &&
	       sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 &&
	       (inside || outside || count != UINT32_MAX);
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
