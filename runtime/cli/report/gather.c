// SPDX-License-Identifier: MIT
/*
 * The parts of a report that are about the whole machine: versions and configuration. Other parts use
 * the first functions here to read a file, or to note why it is not there.
 *
 * The struct gather and the bundle belong to the verb.
 */
#define _GNU_SOURCE
#include "gather.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "../frame/document.h"
#include "../frame/output.h"
#include "embeng.h"

char *gather_text(struct gather *g, const char *name, const char *words, const char *path,
		  size_t most)
{
	char *text = tree_text(g->tree, path, most);
	int err = errno;

	if (!text)
		bundle_miss(g->bundle, name, words, err != ENOENT && err != ENOTDIR, "%s: %s%s",
			    path, strerror(err),
			    err == EACCES || err == EPERM
				    ? "; run it with the rights of an administrator"
				    : "");
	return text;
}

FILE *gather_open(char **text, size_t *size)
{
	FILE *f = open_memstream(text, size);

	if (!f)
		document_no_memory();
	return f;
}

void gather_close(FILE *text)
{
	if (fclose(text))
		document_no_memory();
}

static void add_line_of(struct gather *g, struct json_object *to, const char *key, const char *path)
{
	char line[TREE_LINE];

	json_add_text(to, key, tree_line(g->tree, path, line, sizeof(line)) ? NULL : line);
}

static void add_kernel(struct gather *g, struct json_object *document)
{
	struct utsname name;

	add_line_of(g, document, "kernel", "/proc/sys/kernel/osrelease");
	if (!tree_is_recorded(g->tree) && !uname(&name))
		json_add_text(document, "machine", name.machine);
}

/* A value of os-release(5) may stand in quotation marks. */
static void add_release(struct json_object *system, const char *key, char *value)
{
	size_t length = strlen(value);

	if (length > 1 && (*value == '"' || *value == '\'') && value[length - 1] == *value) {
		value[length - 1] = '\0';
		value++;
	}
	json_add_text(system, key, value);
}

/* ID and VERSION_ID name a distribution, and nobody who uses it. */
static void add_system(struct gather *g, struct json_object *document)
{
	char *text = tree_text(g->tree, "/etc/os-release", TREE_TEXT), *rest = text, *line;
	struct json_object *system = json_object_new_object();

	while ((line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "ID=", 3))
			add_release(system, "id", line + 3);
		if (!strncmp(line, "VERSION_ID=", 11))
			add_release(system, "version", line + 11);
	}
	free(text);
	json_object_object_add(document, "system", system);
}

static void add_modules(struct gather *g, struct json_object *document)
{
	static const char *const modules[] = {"embeng", "embeng_emu"};
	char path[TREE_PATH];

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		struct json_object *module = json_object_new_object();

		tree_path(path, "/sys/module/%s", modules[i]);
		json_object_object_add(
			module, "loaded",
			json_object_new_boolean(tree_kind(g->tree, path) == TREE_FOLDER));
		add_line_of(g, module, "version",
			    tree_path(path, "/sys/module/%s/version", modules[i]));
		add_line_of(g, module, "srcversion",
			    tree_path(path, "/sys/module/%s/srcversion", modules[i]));
		add_line_of(g, module, "taint",
			    tree_path(path, "/sys/module/%s/taint", modules[i]));
		json_object_object_add(document, modules[i], module);
	}
}

void gather_versions(struct gather *g)
{
	struct json_object *document = json_object_new_object(), *devices = json_object_new_array();
	char path[TREE_PATH], *text;
	size_t length;

	json_add_text(document, "schema", "embeng.versions/1");
	snprintf(path, sizeof(path), "%d.%d.%d", EMBENG_VERSION_MAJOR, EMBENG_VERSION_MINOR,
		 EMBENG_VERSION_PATCH);
	json_add_text(document, "command", path);
	json_add_text(document, "library", embeng_version());
	add_modules(g, document);
	add_kernel(g, document);
	add_system(g, document);
	for (size_t i = 0; i < g->functions.count; i++) {
		const struct function *f = &g->functions.list[i];
		struct json_object *device = json_object_new_object();

		json_add_text(device, "address", f->address);
		add_line_of(g, device, "firmware", function_path(path, f, "firmware_version"));
		add_line_of(g, device, "interface", function_path(path, f, "interface_version"));
		json_object_array_add(devices, device);
	}
	json_object_object_add(document, "devices", devices);
	if (document_text(document, &text, &length))
		document_no_memory();
	json_object_put(document);
	bundle_add(g->bundle, "versions.json",
		   "versions of the command, the library, the driver, firmware and the kernel",
		   text);
}

/* -- configuration -------------------------------------------------------- */

/* Notes in the text and in the index what could not be read. */
static void note_unread(struct gather *g, FILE *to, const char *path, int err)
{
	fprintf(to, "%s: %s\n", path, strerror(err));
	bundle_miss(g->bundle, path, "a part of configuration.txt", true, "%s: %s", path,
		    strerror(err));
}

static void write_parameters(struct gather *g, FILE *to, const char *module)
{
	char folder[TREE_PATH], path[TREE_PATH], line[TREE_LINE];
	struct tree_names names;

	tree_path(folder, "/sys/module/%s/parameters", module);
	fprintf(to, "# %s\n", folder);
	if (tree_list(g->tree, folder, &names)) {
		fprintf(to, "not loaded, or without parameters\n\n");
		return;
	}
	for (size_t i = 0; i < names.count; i++) {
		int err = tree_line(g->tree, tree_path(path, "%s/%s", folder, names.list[i]), line,
				    sizeof(line));

		if (err)
			note_unread(g, to, path, -err);
		else
			fprintf(to, "%s = %s\n", names.list[i], line);
	}
	fputc('\n', to);
	tree_names_free(&names);
}

/* Whether a line names one of the modules as a word. */
static bool is_about_us(const char *line)
{
	static const char name[] = "embeng";
	const char *found = line;

	while ((found = strstr(found, name))) {
		const char *end = found + strlen(name);

		if (!strncmp(end, "_emu", 4))
			end += 4;
		if ((found == line ||
		     !strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", found[-1])) &&
		    (!*end || strchr(" \t\n.=:,-/", *end)))
			return true;
		found++;
	}
	return false;
}

static void write_lines_about_us(struct gather *g, FILE *to, const char *path)
{
	char *text = tree_text(g->tree, path, TREE_TEXT), *rest = text, *line;
	int err = errno;

	if (!text) {
		if (err != ENOENT)
			note_unread(g, to, path, err);
		return;
	}
	while ((line = strsep(&rest, "\n"))) {
		if (is_about_us(line))
			fprintf(to, "%s: %s\n", path, line);
	}
	free(text);
}

static void write_modprobe(struct gather *g, FILE *to)
{
	static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d",
					      "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d",
					      "/lib/modprobe.d"};
	struct tree_names names;
	char path[TREE_PATH];

	fputs("# lines of modprobe.d about the modules\n", to);
	for (size_t f = 0; f < sizeof(folders) / sizeof(folders[0]); f++) {
		if (tree_list(g->tree, folders[f], &names))
			continue;
		for (size_t i = 0; i < names.count; i++)
			write_lines_about_us(g, to,
					     tree_path(path, "%s/%s", folders[f], names.list[i]));
		tree_names_free(&names);
	}
	fputc('\n', to);
}

/* Words about the modules, and those that change how a device reaches memory. */
static void write_kernel_words(struct gather *g, FILE *to)
{
	static const char *const others[] = {"iommu", "intel_iommu", "amd_iommu", "swiotlb",
					     "pci",   "pcie_aspm",   "hugepages"};
	char *text = tree_text(g->tree, "/proc/cmdline", TREE_TEXT), *rest = text, *word;

	fputs("# words of the kernel's command line about the modules and memory\n", to);
	while ((word = strsep(&rest, " \n"))) {
		bool shown = is_about_us(word);

		for (size_t i = 0; !shown && i < sizeof(others) / sizeof(others[0]); i++) {
			size_t length = strlen(others[i]);

			shown = !strncmp(word, others[i], length) &&
				(word[length] == '=' || word[length] == '.' || !word[length]);
		}
		if (shown)
			fprintf(to, "%s\n", word);
	}
	fputc('\n', to);
	free(text);
}

static void write_whole_file(struct gather *g, FILE *to, const char *title, const char *path)
{
	char *text = tree_text(g->tree, path, TREE_TEXT);
	int err = errno;

	fprintf(to, "# %s\n", title);
	if (text)
		fprintf(to, "%s\n", text);
	else if (err == ENOENT)
		fputs("not there\n\n", to);
	else
		note_unread(g, to, path, err);
	free(text);
}

void gather_configuration(struct gather *g)
{
	char *text;
	size_t size;
	FILE *to = gather_open(&text, &size);

	write_parameters(g, to, "embeng");
	write_parameters(g, to, "embeng_emu");
	write_modprobe(g, to);
	write_kernel_words(g, to);
	write_whole_file(g, to, "limits of this process", "/proc/self/limits");
	write_whole_file(g, to, "memory of the machine", "/proc/meminfo");
	write_whole_file(g, to, "functions that the driver refused",
			 "/sys/bus/pci/drivers/embeng/refusals");
	gather_close(to);
	bundle_add(g->bundle, "configuration.txt",
		   "parameters of the modules, modprobe.d, limits and memory", text);
}
