// SPDX-License-Identifier: MIT
/*
 * Checks of the way between device and memory: power, link, bus errors, and what translates or
 * copies the device's accesses. host.c has those that have nothing to do with the device.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

#define DMA_MASK "a DMA mask that does not reach all memory"

void check_power(const struct machine *m, const struct function *device, struct finding *f)
{
	char state[32], runtime[32] = "";

	if (!read_device_line(m, device, "power_state", state, sizeof(state))) {
		found_nothing(f, "the kernel does not tell its power state");
		return;
	}
	read_device_line(m, device, "power/runtime_status", runtime, sizeof(runtime));
	if (!strcmp(state, "D3cold")) {
		found_problem(f, CLI_DEVICE, "the function is in D3cold: it has no power");
		found_fix(f,
			  "`echo on >/sys/bus/pci/devices/%s/power/control` as root; if it stays "
			  "so, check the power of the slot, and switch the machine off and on",
			  device->address);
	} else if (!strcmp(runtime, "error")) {
		found_problem(f, CLI_DEVICE, "the kernel could not change its power state");
		found_fix(f, "`dmesg | grep %s` says why; unbind and bind the driver",
			  device->address);
	} else if (strcmp(state, "D0") && strcmp(state, "unknown")) {
		found_warning(f, "the function sleeps in %s", state);
		found_fix(f, "`echo on >/sys/bus/pci/devices/%s/power/control` as root wakes it",
			  device->address);
	} else {
		found_ok(f, "power state %s", state);
	}
}

/* Reads the number that a line begins with, as "8.0 GT/s PCIe" in tenths: 80. 0 if there is none. */
static unsigned int read_tenths(const struct machine *m, const struct function *device,
				const char *attribute, char line[64])
{
	unsigned int whole, tenth = 0;

	if (!read_device_line(m, device, attribute, line, 64) ||
	    sscanf(line, "%4u.%1u", &whole, &tenth) < 1)
		return 0;
	return whole * 10 + tenth;
}

void check_link(const struct machine *m, const struct function *device, struct finding *f)
{
	char speed[64], best_speed[64], width[64], best_width[64];
	unsigned int now = read_tenths(m, device, "current_link_speed", speed);
	unsigned int best = read_tenths(m, device, "max_link_speed", best_speed);
	unsigned int lanes = read_tenths(m, device, "current_link_width", width);
	unsigned int best_lanes = read_tenths(m, device, "max_link_width", best_width);

	if (!now || !best || !lanes || !best_lanes || best_lanes >= 2550) {
		found_nothing(f, "the function has no link of its own");
		return;
	}
	if (now >= best && lanes >= best_lanes) {
		found_ok(f, "%s, %s lanes", speed, width);
		return;
	}
	if (lanes < best_lanes && now < best)
		found_warning(f, "the link has %s lanes of %s, at %s, and could run at %s", width,
			      best_width, speed, best_speed);
	else if (lanes < best_lanes)
		found_warning(f, "the link has %s lanes of %s, at %s", width, best_width, speed);
	else
		found_warning(f, "the link runs at %s and could at %s", speed, best_speed);
	found_fix(
		f,
		"Put the board into a slot with as many lanes and as much speed; clean and reseat "
		"it, and try without a riser. A link that saves power is slow only until there "
		"is work: `lspci -vv -s %s` shows LnkCap and LnkSta",
		device->address);
}

/* The number behind TOTAL_ERR_... of a file of counters. */
static uint64_t read_total(const struct machine *m, const struct function *device,
			   const char *attribute, bool *there)
{
	char path[TREE_PATH];
	char *text = tree_text(m->tree, function_path(path, device, attribute), TREE_TEXT);
	const char *line = text ? strstr(text, "TOTAL_ERR_") : NULL;
	uint64_t total = 0;

	*there |= text != NULL;
	if (line)
		(void)sscanf(line, "%*s %" SCNu64, &total);
	free(text);
	return total;
}

void check_aer(const struct machine *m, const struct function *device, struct finding *f)
{
	bool there = false;
	uint64_t corrected = read_total(m, device, "aer_dev_correctable", &there);
	uint64_t lost = read_total(m, device, "aer_dev_nonfatal", &there) +
			read_total(m, device, "aer_dev_fatal", &there);

	if (!there) {
		found_nothing(f, "the function reports no errors of its link (AER)");
		return;
	}
	if (!corrected && !lost) {
		found_ok(f, "no error of the link since the machine started");
		return;
	}
	if (lost)
		found_problem(f, CLI_DEVICE,
			      "%" PRIu64 " errors of the link lost data, %" PRIu64
			      " were corrected",
			      lost, corrected);
	else
		found_warning(f, "%" PRIu64 " errors of the link were corrected", corrected);
	f->stops = false;
	found_fix(f,
		  "Reseat the board, change the slot, cable or riser, and look whether "
		  "/sys/bus/pci/devices/%s/aer_dev_* still grow",
		  device->address);
}

/* -- the IOMMU -------------------------------------------------------------- */

/* Reads the number of the device's group, as text. False if it has none. */
static bool read_group(const struct machine *m, const struct function *device, char group[16])
{
	char path[TREE_PATH];

	return !tree_link(m->tree, function_path(path, device, "iommu_group"), group, 16);
}

/* Finds another function of the group that a virtual machine may have. */
static bool find_taken(const struct machine *m, const struct function *device, const char *group,
		       char taken[64])
{
	char path[TREE_PATH], driver[64];
	struct tree_names names;
	bool found = false;

	if (tree_list(m->tree, tree_path(path, "/sys/kernel/iommu_groups/%s/devices", group),
		      &names))
		return false;
	for (size_t i = 0; i < names.count && !found; i++) {
		tree_kind(m->tree, tree_path(path, "/sys/kernel/iommu_groups/%s/devices/%s", group,
					     names.list[i]));
		tree_path(path, "/sys/bus/pci/devices/%s/driver", names.list[i]);
		found = strcmp(names.list[i], device->address) &&
			!tree_link(m->tree, path, driver, sizeof(driver)) &&
			strstr(driver, "vfio"); /* "mlx5_vfio_pci" is one, too */
		if (found)
			snprintf(taken, 64, "%.63s", names.list[i]);
	}
	tree_names_free(&names);
	return found;
}

void check_iommu_group(const struct machine *m, const struct function *device, struct finding *f)
{
	char group[16], taken[64];

	if (!read_group(m, device, group)) {
		found_ok(f, "no IOMMU is in front of it");
		return;
	}
	if (strcmp(device->driver, "embeng") && find_taken(m, device, group, taken)) {
		found_problem(f, CLI_BUSY, "a virtual machine may have %s of its IOMMU group %s",
			      taken, group);
		found_fix(f,
			  "End the virtual machine and unbind %s from its vfio driver, or put the "
			  "board into a slot with an IOMMU group of its own",
			  taken);
		return;
	}
	found_ok(f, "IOMMU group %s", group);
}

void check_iommu_mode(const struct machine *m, const struct function *device, struct finding *f)
{
	char group[16], path[TREE_PATH], type[32];

	if (!read_group(m, device, group) ||
	    tree_line(m->tree, tree_path(path, "/sys/kernel/iommu_groups/%s/type", group), type,
		      sizeof(type))) {
		found_ok(f, "no IOMMU is in front of it: it reaches memory by physical addresses");
		return;
	}
	if (strcmp(type, "DMA")) {
		found_ok(f, "IOMMU group %s translates in the mode '%s'", group, type);
		return;
	}
	found_warning(f, "IOMMU group %s is in strict mode", group);
	found_fix(f,
		  "Boot with iommu.strict=0 (lazy) or iommu=pt (no translation for trusted "
		  "devices); while the driver is unbound: `echo DMA-FQ "
		  ">/sys/kernel/iommu_groups/%s/type` as root",
		  group);
}

/* -- bounce buffers ---------------------------------------------------------- */

static uint64_t read_machine_memory(const struct machine *m)
{
	char *text = tree_text(m->tree, "/proc/meminfo", TREE_TEXT);
	const char *line = text ? strstr(text, "MemTotal:") : NULL;
	uint64_t kib = line ? strtoull(line + 9, NULL, 10) : 0;

	free(text);
	return kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

/* Names why DMA of the device is copied; NULL if it is not. */
static const char *find_bouncing(const struct machine *m, const struct function *device)
{
	char value[64], group[16];
	uint64_t bits;

	if (read_boot_option(m, "swiotlb", value, sizeof(value)) && strstr(value, "force") &&
	    !strstr(value, "noforce"))
		return "swiotlb=force on the kernel's command line";
	if (read_boot_option(m, "mem_encrypt", value, sizeof(value)) && !strcmp(value, "on"))
		return "mem_encrypt=on on the kernel's command line";
	if (!strcmp(device->driver, "embeng") && !read_group(m, device, group) &&
	    read_device_number(m, device, "dma_mask_bits", &bits) && bits < 64 &&
	    read_machine_memory(m) > (uint64_t)1 << bits)
		return DMA_MASK;
	return NULL;
}

void check_swiotlb(const struct machine *m, const struct function *device, struct finding *f)
{
	const char *why = find_bouncing(m, device);

	if (!why) {
		found_ok(f, "the device reaches memory itself");
		return;
	}
	found_warning(f, "all that the device reads and writes is copied: %s", why);
	if (!strcmp(why, DMA_MASK))
		found_fix(f, "Switch the IOMMU on, in the machine's firmware setup or by "
			     "intel_iommu=on on the kernel's command line");
	else
		found_fix(f,
			  "Start the machine without that option (on Debian: "
			  "/etc/default/grub, then `update-grub`), or with an IOMMU switched on. "
			  "A confidential virtual machine cannot do without bounce buffers");
}
