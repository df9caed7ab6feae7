// SPDX-License-Identifier: MIT
/*
 * The check of what forbids the driver: the kernel's command line and modprobe's configuration. It is
 * a file of its own because both have rules of their own, which are those of the kernel's parser and
 * of kmod.
 *
 * A file of modprobe.d hides those of the same name in the folders behind its own, so that an empty
 * one, or a link to /dev/null, takes a distribution's line back. Nothing is kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#define MODULE "embeng"
/* The beginning of the names by which the kernel asks for a driver of a function of the vendor. */
#define ALIAS "pci:v00000EB0"

/* -- the command line ------------------------------------------------------ */

/* True if a list that commas part has the driver. */
static bool lists_driver(const struct boot_word *word)
{
	const char *at = word->value, *end = at + word->length;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		size_t length = (size_t)((comma ? comma : end) - at);

		if (length == strlen(MODULE) && !memcmp(at, MODULE, length))
			return true;
		at += length + 1;
	}
	return false;
}

/*
 * Finds the option of the command line that forbids the driver. The kernel goes by the last
 * module_blacklist, modprobe by every modprobe.blacklist.
 */
static const char *find_boot_blacklist(const struct machine *m)
{
	bool by_kernel = false, by_modprobe = false;
	const char *at = m->cmdline;
	struct boot_word word;

	while (next_boot_word(&at, &word)) {
		if (is_boot_word(&word, "module_blacklist"))
			by_kernel = lists_driver(&word);
		else if (is_boot_word(&word, "modprobe.blacklist"))
			by_modprobe |= lists_driver(&word);
	}
	return by_kernel ? "module_blacklist" : by_modprobe ? "modprobe.blacklist" : NULL;
}

/* -- modprobe.d ------------------------------------------------------------ */

/* True if a command that stands in for loading the driver may load it all the same. */
static bool may_load_driver(const char *command)
{
	const size_t first = strcspn(command, " \t;&|");
	const char *own = strstr(command, MODULE);

	if (strstr(command, "modprobe") || strstr(command, "insmod"))
		return own || strchr(command, '$');
	return own && own < command + first; /* a script for this driver */
}

/* True if a line of modprobe's configuration keeps the driver from being loaded. */
static bool is_forbidding(const char *line)
{
	char verb[16], name[64], next[16] = "";
	int command = 0;

	if (sscanf(line, "%15s %63s %n%15s", verb, name, &command, next) < 2)
		return false;
	if (!strcmp(verb, "alias"))
		return !strcmp(next, "off") &&
		       (!strcmp(name, MODULE) || !strncmp(name, ALIAS, strlen(ALIAS)));
	if (strcmp(name, MODULE))
		return false;
	return !strcmp(verb, "blacklist") ||
	       (!strcmp(verb, "install") && *next && !may_load_driver(line + command));
}

/* Takes the line at *@rest out of a text; a backslash at its end joins it with the next one. */
static char *take_config_line(char **rest)
{
	char *line = *rest, *to = line, *from = line;

	for (; *from && *from != '\n'; from++) {
		if (from[0] == '\\' && from[1] == '\n')
			from++;
		else
			*to++ = *from;
	}
	*rest = from + (*from == '\n');
	*to = '\0';
	return line;
}

static bool forbids_driver(const struct machine *m, const char *path)
{
	char *text = tree_text(m->tree, path, TREE_TEXT), *rest = text, target[8];
	bool forbids = false;

	/* A record needs the link that hides another file, though nothing is in it. */
	if (!text)
		tree_link(m->tree, path, target, sizeof(target));
	while (rest && *rest && !forbids)
		forbids = is_forbidding(take_config_line(&rest));
	free(text);
	return forbids;
}

/* Folders of modprobe's configuration, of which the first that has a name has it alone. */
static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d",
				      "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
				      "/lib/modprobe.d"};

#define FOLDERS (sizeof(folders) / sizeof(folders[0]))

static bool has_name(const struct tree_names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++) {
		if (!strcmp(names->list[i], name))
			return true;
	}
	return false;
}

static bool is_hidden(const struct tree_names names[FOLDERS], size_t folder, const char *name)
{
	for (size_t k = 0; k < folder; k++) {
		if (has_name(&names[k], name))
			return true;
	}
	return false;
}

/* Finds the file of modprobe's configuration that forbids the driver. */
static bool find_blacklist(const struct machine *m, char path[TREE_PATH])
{
	struct tree_names names[FOLDERS];
	bool found = false;

	for (size_t k = 0; k < FOLDERS; k++)
		tree_list(m->tree, folders[k], &names[k]);
	for (size_t k = 0; k < FOLDERS; k++) {
		for (size_t i = 0; i < names[k].count && !found; i++) {
			const char *name = names[k].list[i], *end = strrchr(name, '.');

			found = end && !strcmp(end, ".conf") && !is_hidden(names, k, name) &&
				forbids_driver(m, tree_path(path, "%s/%s", folders[k], name));
		}
	}
	for (size_t k = 0; k < FOLDERS; k++)
		tree_names_free(&names[k]);
	return found;
}

void check_driver_blacklisted(const struct machine *m, const struct function *device,
			      struct finding *f)
{
	const char *option = find_boot_blacklist(m);
	char path[TREE_PATH] = "";
	bool file = !option && find_blacklist(m, path);

	(void)device;
	if (!option && !file) {
		found_ok(f, "neither modprobe.d nor the kernel's command line forbids it");
		return;
	}
	if (is_driver_loaded(m))
		found_warning(f, "%.300s forbids the driver, which is loaded all the same",
			      option ? option : path);
	else
		found_problem(f, CLI_NO_DRIVER, "%.300s forbids the driver",
			      option ? option : path);
	if (option)
		found_fix(f,
			  "Take embeng out of %s= on the kernel's command line (on Debian: "
			  "/etc/default/grub, then `update-grub`) and start the machine again",
			  option);
	else
		found_fix(f,
			  "Take the line about embeng out of %.300s, then `modprobe embeng`, as "
			  "root",
			  path);
}
