// SPDX-License-Identifier: MIT
/*
 * Reads the numbers of devices from sysfs, hwmon and debugfs.
 *
 * Files that do not change are read once and kept: which functions there are, the folder of their
 * sensors, their link and firmware, and which descriptors are devices. They are searched for again
 * after ten seconds, and when a device is gone; on a machine with very many descriptors, so seldom
 * that searching takes half a percent of a processor. The files of contexts are read by processes.c.
 *
 * The keeper belongs to one thread.
 */
#include "gather.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../text/number.h"
#include "processes.h"

#define SEARCH_NS 10000000000ull
#define SEARCH_REST 200 /* times as long as a search took, at the least */

/**
 * struct known_device - a device, and what of it is not read for each sample
 * @sensors: folder of its sensors below /sys, or ""
 */
struct known_device {
	struct sample_device fixed;
	char sensors[TREE_PATH];
};

struct gather {
	const char *only;
	struct known_device *devices;
	size_t count;
	uint64_t search_ns; /* when to search again; 0: now */
	struct processes processes;
};

static const char *const count_files[COUNTS] = {
#define FILE_OF(name, key, file) file,
	COUNT_TABLE(FILE_OF)
#undef FILE_OF
};

struct gather *gather_new(const char *only)
{
	struct gather *gather = calloc(1, sizeof(*gather));

	if (gather)
		gather->only = only;
	return gather;
}

void gather_forget(struct gather *gather)
{
	free(gather->devices);
	gather->devices = NULL;
	gather->count = 0;
	gather->search_ns = 0;
	processes_forget(&gather->processes);
}

void gather_free(struct gather *gather)
{
	if (gather)
		gather_forget(gather);
	free(gather);
}

static const char *device_path(char path[TREE_PATH], const struct sample_device *device,
			       const char *name)
{
	return tree_path(path, "/sys/bus/pci/devices/%s/%s", device->address, name);
}

static void read_device_word(struct tree *tree, const struct sample_device *device,
			     const char *name, char *word, size_t size)
{
	char path[TREE_PATH];

	if (tree_line(tree, device_path(path, device, name), word, size))
		*word = '\0';
}

/*
 * "16.0 GT/s PCIe" and "8" become "16.0 GT/s PCIe x8". A bus that is only emulated has no link: the
 * kernel calls the speed unknown, and there are no lanes.
 */
static void read_link(struct tree *tree, struct sample_device *device)
{
	char speed[32], width[8];

	read_device_word(tree, device, "current_link_speed", speed, sizeof(speed));
	read_device_word(tree, device, "current_link_width", width, sizeof(width));
	if (*speed && *width && strcmp(width, "0") != 0)
		snprintf(device->link, sizeof(device->link), "%s x%s", speed, width);
}

static bool read_gauge(struct tree *tree, const char *path, struct sample_device *device,
		       enum gauge gauge)
{
	char line[64];

	if (tree_line(tree, path, line, sizeof(line)) ||
	    number_read_signed(line, INT64_MIN, INT64_MAX, &device->gauges[gauge]))
		return false;
	device->gauged |= 1u << gauge;
	return true;
}

/* A driver shows clocks by 0, or not at all, where the device does not tell them. */
static void read_clock(struct tree *tree, struct sample_device *device, const char *name,
		       enum gauge gauge)
{
	char path[TREE_PATH];

	if (read_gauge(tree, device_path(path, device, name), device, gauge) &&
	    device->gauges[gauge] <= 0)
		device->gauged &= ~(1u << gauge);
}

static void know_device(struct gather *gather, struct tree *tree, const struct function *function)
{
	struct known_device *known = &gather->devices[gather->count++];
	struct sample_device *device = &known->fixed;
	char path[TREE_PATH];

	*known = (struct known_device){0};
	strcpy(device->address, function->address);
	strcpy(device->node, function->node);
	strcpy(device->driver, function->driver);
	if (strcmp(device->driver, "embeng") != 0)
		return;
	read_link(tree, device);
	read_device_word(tree, device, "firmware_version", device->firmware,
			 sizeof(device->firmware));
	read_gauge(tree, device_path(path, device, "table_memory_total"), device,
		   GAUGE_MEMORY_TOTAL);
	read_clock(tree, device, "clock_limit_hz", GAUGE_CLOCK_LIMIT);
	if (function_sensors(tree, device->address, known->sensors))
		read_gauge(tree, tree_path(path, "%s/temp1_crit", known->sensors), device,
			   GAUGE_TEMPERATURE_LIMIT);
}

static bool is_chosen_device(const struct gather *gather, const struct function *function)
{
	return function_is_known(function) &&
	       (!gather->only || !strcmp(gather->only, function->address) ||
		!strcmp(gather->only, function->node));
}

static int search_devices(struct gather *gather, struct tree *tree)
{
	struct functions functions;
	int err = functions_find(tree, &functions);

	if (err)
		return err;
	free(gather->devices);
	gather->count = 0;
	gather->devices = calloc(functions.count + 1, sizeof(*gather->devices));
	for (size_t i = 0; gather->devices && i < functions.count; i++) {
		if (is_chosen_device(gather, &functions.list[i]))
			know_device(gather, tree, &functions.list[i]);
	}
	functions_free(&functions);
	return gather->devices ? 0 : -ENOMEM;
}

static void read_cores(struct tree *tree, struct sample_device *device)
{
	char line[SAMPLE_CORES * 21], path[TREE_PATH], *at = line, *word;

	if (tree_line(tree, device_path(path, device, "cores_busy_ns"), line, sizeof(line)))
		return;
	while (device->cores < SAMPLE_CORES && (word = strsep(&at, " "))) {
		if (number_read(word, strlen(word), 10, &device->core_ns[device->cores]))
			break;
		device->cores++;
	}
}

/* Return: false if there is nothing left of the device. */
static bool sample_device(struct tree *tree, const struct known_device *known,
			  struct sample_device *device)
{
	char path[TREE_PATH];

	*device = known->fixed;
	if (strcmp(device->driver, "embeng") != 0)
		return true;
	for (size_t i = 0; i < COUNTS; i++) {
		if (!tree_number(tree, device_path(path, device, count_files[i]),
				 &device->counts[i]))
			device->known |= 1u << i;
	}
	read_gauge(tree, device_path(path, device, "table_memory_used"), device, GAUGE_MEMORY_USED);
	read_gauge(tree, device_path(path, device, "readings_age_ms"), device, GAUGE_AGE);
	read_gauge(tree, device_path(path, device, "resets/wedged"), device, GAUGE_WEDGED);
	if (device->gauged & 1u << GAUGE_CLOCK_LIMIT)
		read_clock(tree, device, "clock_hz", GAUGE_CLOCK);
	read_cores(tree, device);
	if (!*known->sensors)
		return device->known != 0;
	read_gauge(tree, tree_path(path, "%s/temp1_input", known->sensors), device,
		   GAUGE_TEMPERATURE);
	read_gauge(tree, tree_path(path, "%s/power1_input", known->sensors), device, GAUGE_POWER);
	return device->known != 0;
}

/* Administrators alone may read it, and a kernel may be built without it. */
static int read_queues(struct tree *tree, struct sample *sample, const char *address)
{
	char path[TREE_PATH], *text;
	int err;

	text = tree_text(tree, tree_path(path, "/sys/kernel/debug/accel/%s/contexts", address),
			 TREE_TEXT);
	if (!text) {
		sample->queues_hidden = true;
		return errno == ENOMEM ? -ENOMEM : 0;
	}
	err = sample_take_queues(sample, address, text);
	free(text);
	return err;
}

static int read_devices(struct gather *gather, struct tree *tree, struct sample *sample)
{
	bool gone = false;

	for (size_t i = 0; i < gather->count; i++) {
		struct sample_device *device = sample_add_device(sample);
		int err;

		if (!device)
			return -ENOMEM;
		if (!sample_device(tree, &gather->devices[i], device))
			gone = true;
		err = read_queues(tree, sample, device->address);
		if (err)
			return err;
	}
	return gone ? -ENODEV : 0;
}

static bool has_device(const struct sample *sample, const char *address)
{
	for (size_t i = 0; i < sample->device_count; i++) {
		if (!strcmp(sample->devices[i].address, address))
			return true;
	}
	return false;
}

/* Contexts of devices that nobody asked for, or that other drivers have. */
static void drop_strange_contexts(struct sample *sample)
{
	size_t kept = 0;

	for (size_t i = 0; i < sample->context_count; i++) {
		if (has_device(sample, sample->contexts[i].info.address))
			sample->contexts[kept++] = sample->contexts[i];
	}
	sample->context_count = kept;
}

static uint64_t read_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Notes when to search again: a search that began at @began_ns has ended now. */
static void note_search(struct gather *gather, uint64_t began_ns)
{
	uint64_t now = read_time_ns(), rest = (now - began_ns) * SEARCH_REST;

	gather->search_ns = now + (rest > SEARCH_NS ? rest : SEARCH_NS);
}

static int take_sample(struct gather *gather, struct tree *tree, struct sample *out)
{
	uint64_t now = read_time_ns();
	bool search = now >= gather->search_ns;
	int err = search ? search_devices(gather, tree) : 0, gone;

	if (err)
		return err;
	out->time_ns = read_time_ns();
	gone = read_devices(gather, tree, out);
	if (gone && gone != -ENODEV)
		return gone;
	err = out->device_count ? processes_read(&gather->processes, tree, search, out) : 0;
	if (search)
		note_search(gather, now);
	if (gone)
		gather->search_ns = 0;
	if (!err)
		drop_strange_contexts(out);
	return err;
}

int gather_sample(struct gather *gather, struct tree *tree, struct sample *out)
{
	int err;

	*out = (struct sample){0};
	err = take_sample(gather, tree, out);
	if (err)
		sample_free(out);
	return err;
}
