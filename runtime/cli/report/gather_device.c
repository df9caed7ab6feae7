// SPDX-License-Identifier: MIT
/*
 * The parts of a report that are about one device: its attributes in sysfs, and what debugfs has of
 * its registers, events and contexts. Each device has files of its own, named by its PCI address.
 */
#define _GNU_SOURCE
#include "gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../decode/line.h"
#include "../decode/registers.h"
#include "../frame/document.h"

/* Attributes of the function and of the driver, and folders of them; docs/abi describes the latter. */
static const char *const attributes[] = {
	"vendor",
	"device",
	"revision",
	"class",
	"current_link_speed",
	"current_link_width",
	"max_link_speed",
	"max_link_width",
	"power_state",
	"power/runtime_status",
	"power/control",
	"numa_node",
	"enable",
	"aer_dev_correctable",
	"aer_dev_nonfatal",
	"aer_dev_fatal",
	"firmware_version",
	"firmware_minimum",
	"firmware_image",
	"firmware_signature",
	"firmware_refused",
	"interface_version",
	"busy_time_ns",
	"cores_busy_ns",
	"readings_age_ms",
	"clock_hz",
	"clock_limit_hz",
	"table_memory_total",
	"table_memory_used",
};

static const char *const folders[] = {"counters", "resets"};

static void write_attribute(struct gather *g, FILE *to, const struct function *f,
			    const char *attribute)
{
	char path[TREE_PATH], *text;

	function_path(path, f, attribute);
	text = tree_text(g->tree, path, TREE_TEXT);
	if (!text) {
		if (errno != ENOENT && errno != ENOTDIR)
			fprintf(to, "%-28s could not be read: %s\n", attribute, strerror(errno));
		return;
	}
	text[strcspn(text, "\n")] = strchr(text, '\n') && strchr(text, '\n')[1] ? '\n' : '\0';
	fprintf(to, "%-28s %s\n", attribute, text);
	free(text);
}

static void add_attributes(struct gather *g, const struct function *f)
{
	struct tree_names names;
	char path[TREE_PATH], name[TREE_PATH], *text;
	size_t size;
	FILE *to = gather_open(&text, &size);

	fprintf(to, "%-28s %s\n", "driver", *f->driver ? f->driver : "none");
	fprintf(to, "%-28s %s\n", "node", *f->node ? f->node : "none");
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		write_attribute(g, to, f, attributes[i]);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (tree_list(g->tree, function_path(path, f, folders[i]), &names))
			continue;
		for (size_t k = 0; k < names.count; k++)
			write_attribute(g, to, f,
					tree_path(name, "%s/%s", folders[i], names.list[k]));
		tree_names_free(&names);
	}
	gather_close(to);
	tree_path(name, "device-%s/attributes.txt", f->address);
	bundle_add(g->bundle, name, "what sysfs has of the device, with counters and resets", text);
}

/* Lines "OFFSET NAME VALUE" of debugfs, each as a register with what it means. */
static void decode_registers(struct sheet *s, const char *text)
{
	struct line line = {0};
	size_t end = 0;

	while (line_next(text, strlen(text), &line, &end)) {
		char offset[16], name[32];
		uint64_t value;

		s->line = line.number;
		if (line.length && *line.at == '#') {
			sheet_odd(s, line.offset, "%.*s", (int)line.length, line.at);
			continue;
		}
		if (line_take(&line, offset, sizeof(offset)) &&
		    line_take(&line, name, sizeof(name)) && line_number(&line, &value))
			register_show(s, line.offset, name, value);
		else
			sheet_odd(s, line.offset, "the line is none of the driver's");
	}
}

static void add_decoded_registers(struct gather *g, const char *name, const char *text)
{
	struct sheet sheet;
	char *decoded;
	size_t size;
	FILE *to;

	sheet_begin(&sheet);
	sheet.line = 1;
	sheet_part(&sheet, 0, "registers");
	decode_registers(&sheet, text);
	to = gather_open(&decoded, &size);
	sheet_print(&sheet, to);
	gather_close(to);
	sheet_end(&sheet);
	bundle_add(g->bundle, name, "the registers in words, and what is odd about them", decoded);
}

static void add_debugfs(struct gather *g, const struct function *f, const char *file,
			const char *words)
{
	char name[TREE_PATH], path[TREE_PATH], decoded[TREE_PATH], *text;

	tree_path(name, "device-%s/%s.txt", f->address, file);
	tree_path(path, "/sys/kernel/debug/accel/%s/%s", f->address, file);
	text = gather_text(g, name, words, path, TREE_TEXT);
	if (!text)
		return;
	if (!strcmp(file, "registers")) {
		tree_path(decoded, "device-%s/registers.decoded.txt", f->address);
		add_decoded_registers(g, decoded, text);
	}
	bundle_add(g->bundle, name, words, text);
}

void gather_devices(struct gather *g)
{
	for (size_t i = 0; i < g->functions.count; i++) {
		const struct function *f = &g->functions.list[i];

		add_attributes(g, f);
		add_debugfs(g, f, "registers", "the registers, as the driver reads them");
		add_debugfs(g, f, "events", "the device's own log, oldest event first");
		add_debugfs(g, f, "contexts", "contexts and the indices of their queues");
	}
	if (!g->functions.count)
		bundle_miss(g->bundle, "device-ADDRESS/", "what is known of a device", false,
			    "no embedding engine is on the PCI bus");
}
