// SPDX-License-Identifier: MIT
/*
 * The parts of a report that the kernel keeps for everybody: its log, its trace and the dumps of
 * devices. Lines and dumps of others are passed over.
 */
#define _GNU_SOURCE
#include "gather.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>

#include "../decode/readers.h"
#include "../frame/document.h"

#define LOG_MOST ((size_t)16 << 20)
#define TRACE_MOST ((size_t)64 << 20)
#define DUMP_MOST ((size_t)64 << 20)

/* For klogctl(). */
#define READ_ALL 3
#define BUFFER_SIZE 10

#define BUS_NAME_MOST 16 /* "vfio-pci " and the like, in front of an address */

static char *read_kernel_log(void)
{
	int size = klogctl(BUFFER_SIZE, NULL, 0), got;
	char *text;

	if (size < 0)
		return NULL;
	text = malloc((size_t)size + 1);
	if (!text)
		document_no_memory();
	got = klogctl(READ_ALL, text, size);
	if (got < 0) {
		int err = errno;

		free(text);
		errno = err;
		return NULL;
	}
	text[got] = '\0';
	return text;
}

/* The message of a line: behind "<6>[   12.345678] ", or behind the ";" of /dev/kmsg. */
static const char *find_message(const char *line)
{
	const char *p = line;

	if (isdigit((unsigned char)*p) && strchr(p, ';'))
		return strchr(p, ';') + 1;
	if (*p == '<')
		p += strcspn(p, ">") + (strchr(p, '>') != NULL);
	if (*p == '[' && strchr(p, ']')) {
		p = strchr(p, ']') + 1;
		p += strspn(p, " ");
	}
	/* The kernel may say which task or processor wrote it: "[ T123] ". */
	while (*p == '[' && p[1] == ' ' && strchr(p, ']')) {
		p = strchr(p, ']') + 1;
		p += strspn(p, " ");
	}
	return p;
}

static bool is_our_message(const struct gather *g, const char *line)
{
	static const char *const begins[] = {"embeng ", "embeng:", "embeng_emu ",
					     "embeng_emu:", "[drm] Initialized embeng "};
	const char *message = find_message(line);

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		if (!strncmp(message, begins[i], strlen(begins[i])))
			return true;
	}
	/* The PCI core writes about a device, its driver or its port; other drivers begin with it. */
	for (size_t i = 0; i < g->functions.count; i++) {
		const char *at = strstr(message, g->functions.list[i].address);

		if (at && (!strncmp(message, "pci", 3) || at <= message + BUS_NAME_MOST))
			return true;
	}
	return false;
}

void gather_log(struct gather *g)
{
	static const char name[] = "kernel-log.txt",
			  words[] = "messages of the driver and about the device";
	bool recorded = tree_is_recorded(g->tree);
	char *text = recorded ? tree_text(g->tree, "/dev/kmsg", LOG_MOST) : read_kernel_log();
	char *rest = text, *line, *kept;
	int err = errno;
	size_t size;
	FILE *to;

	if (!text) {
		bundle_miss(g->bundle, name, words, err != ENOENT, "the kernel's log: %s%s",
			    strerror(err),
			    err == EPERM ? "; run it with the rights of an administrator" : "");
		return;
	}
	to = gather_open(&kept, &size);
	while ((line = strsep(&rest, "\n"))) {
		if (is_our_message(g, line))
			fprintf(to, "%s\n", line);
	}
	gather_close(to);
	free(text);
	bundle_add(g->bundle, name, words, kept);
}

/* The line of an event from its processor on, "[001] ...": the task stands in front of that. */
static const char *find_processor(const char *line)
{
	const char *event = strstr(line, ": embeng_"), *p = event;

	while (event && p > line) {
		size_t digits;

		p--;
		if (*p != '[')
			continue;
		digits = strspn(p + 1, "0123456789");
		if (digits && p[1 + digits] == ']')
			return p;
	}
	return NULL;
}

/* Adds what the reader of `embeng decode` says of a file that has just been added. */
static void add_decoded(struct gather *g, const char *name, const char *reader_name,
			const char *path, const char *text, size_t size)
{
	const struct bytes bytes = {
		.path = path, .data = (const unsigned char *)text, .size = size};
	struct sheet sheet;
	char *decoded;
	size_t length;
	FILE *to = gather_open(&decoded, &length);

	sheet_begin(&sheet);
	reader_by_name(reader_name)->read(&sheet, &bytes);
	sheet_print(&sheet, to);
	sheet_end(&sheet);
	gather_close(to);
	bundle_add(g->bundle, name, "the same in words, as embeng decode says it", decoded);
}

void gather_trace(struct gather *g)
{
	static const char name[] = "trace.txt",
			  words[] = "trace events of the driver, if any were switched on";
	char *text = tree_text(g->tree, "/sys/kernel/tracing/trace", TRACE_MOST), *rest, *line,
	     *kept;
	size_t size, count = 0;
	FILE *to;

	if (!text && errno == ENOENT)
		text = gather_text(g, name, words, "/sys/kernel/debug/tracing/trace", TRACE_MOST);
	else if (!text)
		text = gather_text(g, name, words, "/sys/kernel/tracing/trace", TRACE_MOST);
	if (!text)
		return;
	rest = text;
	to = gather_open(&kept, &size);
	while ((line = strsep(&rest, "\n"))) {
		const char *event = find_processor(line);

		if (event)
			fprintf(to, "%s\n", event);
		count += event != NULL;
	}
	gather_close(to);
	free(text);
	if (!count) {
		free(kept);
		bundle_miss(g->bundle, name, words, false,
			    "no event of the driver is in the trace");
		return;
	}
	add_decoded(g, "trace.decoded.txt", "trace", name, kept, size);
	bundle_add(g->bundle, name, words, kept);
}

static void add_dump(struct gather *g, const char *entry)
{
	static const char words[] =
		"a dump of the driver: what hung, and the state of the device then";
	char path[TREE_PATH], name[TREE_PATH], decoded[TREE_PATH], *text;
	struct bytes bytes = {.path = path};

	tree_path(path, "/sys/class/devcoredump/%s/data", entry);
	tree_path(name, "dumps/%s.txt", entry);
	text = gather_text(g, name, words, path, DUMP_MOST);
	if (!text)
		return;
	bytes.data = (const unsigned char *)text;
	bytes.size = strlen(text);
	if (!dump_is(&bytes)) { /* another driver's */
		free(text);
		return;
	}
	tree_path(decoded, "dumps/%s.decoded.txt", entry);
	add_decoded(g, decoded, "devcoredump", path, text, bytes.size);
	bundle_add(g->bundle, name, words, text);
}

void gather_dumps(struct gather *g)
{
	size_t before = g->bundle->count;
	struct tree_names names;

	if (!tree_list(g->tree, "/sys/class/devcoredump", &names)) {
		for (size_t i = 0; i < names.count; i++) {
			if (!strncmp(names.list[i], "devcd", 5))
				add_dump(g, names.list[i]);
		}
		tree_names_free(&names);
	}
	if (g->bundle->count == before)
		bundle_miss(g->bundle, "dumps/", "dumps of the driver", false,
			    "there is no dump; one is kept for five minutes");
}
