// SPDX-License-Identifier: MIT
/*
 * Checks of the PCI bus: whether there is a function that the driver knows, whether it is still
 * there, and whether its BARs have a place. Sysfs has the ids and places as the kernel found them
 * when the machine started; config space is read from the device.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng_regs.h"

#include "checks.h"

/* Bits of a resource's flags, which sysfs has as the kernel has them (IORESOURCE_MEM and others). */
#define RESOURCE_MEMORY 0x200ull
#define RESOURCE_WIDE 0x100000ull
#define RESOURCE_UNSET 0x20000000ull

#define BARS 6
/* Smaller BARs find a place anywhere. */
#define LARGE_BAR ((uint64_t)16 << 20)

void check_function(const struct machine *m, const struct function *device, struct finding *f)
{
	(void)device;
	if (m->soft) {
		found_nothing(f, "the soft device was named, which is in no slot");
		f->stops = true;
		return;
	}
	if (m->functions.count && (m->count || !m->named)) {
		found_ok(f, "%zu function%s of vendor %04x, the first at %s", m->functions.count,
			 m->functions.count == 1 ? "" : "s", EMBENG_PCI_VENDOR,
			 m->functions.list[0].address);
		return;
	}
	if (m->named)
		found_problem(f, CLI_NO_DEVICE, "no function on the PCI bus is '%s'", m->named);
	else
		found_warning(f,
			      "no function of vendor %04x is on the PCI bus; the soft device is "
			      "there and is used",
			      EMBENG_PCI_VENDOR);
	f->stops = true;
	if (m->named && m->functions.count)
		found_fix(f,
			  "`embeng list` shows the names of devices; the first function of "
			  "vendor %04x is pci:%s",
			  EMBENG_PCI_VENDOR, m->functions.list[0].address);
	else
		found_fix(f, "With a board: check its seat and power, then look again with `echo 1 "
			     ">/sys/bus/pci/rescan` as root. Without one: `modprobe embeng_emu` "
			     "makes an "
			     "emulated function, and `-d soft` names the soft device");
}

/* Somebody may have told the driver about another id by its file new_id. */
static bool is_unknown_function(const struct function *function)
{
	return !function_is_known(function) && strcmp(function->driver, "embeng");
}

void check_ids(const struct machine *m, const struct function *device, struct finding *f)
{
	const struct function *unknown = NULL;

	(void)device;
	for (size_t i = 0; i < m->functions.count; i++) {
		if (is_unknown_function(&m->functions.list[i]))
			unknown = &m->functions.list[i];
	}
	if (!unknown) {
		found_ok(f, "the driver knows the ids of each function");
		return;
	}
	if (m->count)
		found_warning(f, "%s has ids %04x:%04x, which the driver does not know",
			      unknown->address, unknown->vendor, unknown->device);
	else
		found_problem(f, CLI_NO_DEVICE,
			      "%s has ids %04x:%04x, which the driver does not know",
			      unknown->address, unknown->vendor, unknown->device);
	found_fix(f,
		  "Install a release of embeng for this board; to bring a new one up: `echo %04x "
		  "%04x >/sys/bus/pci/drivers/embeng/new_id` as root",
		  unknown->vendor, unknown->device);
}

void check_answers(const struct machine *m, const struct function *device, struct finding *f)
{
	static const unsigned char ones[4] = {0xff, 0xff, 0xff, 0xff};
	unsigned char ids[4] = {0};
	char path[TREE_PATH];
	ssize_t got = tree_bytes(m->tree, function_path(path, device, "config"), ids, sizeof(ids));

	if (got != sizeof(ids)) {
		found_nothing(f, "its config space cannot be read");
		return;
	}
	if ((ids[1] << 8 | ids[0]) == EMBENG_PCI_VENDOR) {
		found_ok(f, "config space answers with %02x%02x:%02x%02x", ids[1], ids[0], ids[3],
			 ids[2]);
		return;
	}
	if (!memcmp(ids, ones, sizeof(ids)))
		found_problem(f, CLI_DEVICE, "config space reads as all ones");
	else
		found_problem(f, CLI_DEVICE,
			      "config space answers with %02x%02x:%02x%02x, and no engine has "
			      "this vendor",
			      ids[1], ids[0], ids[3], ids[2]);
	found_fix(f,
		  "As root: `echo 1 >/sys/bus/pci/devices/%s/remove`, then `echo 1 "
		  ">/sys/bus/pci/rescan`; if it does not come back, check seat, cable and power",
		  device->address);
}

struct bar {
	uint64_t start, end, flags;
};

/* Reads the first lines of the file "resource", one for each BAR. Return: how many there are. */
static int read_bars(const struct machine *m, const struct function *device, struct bar bars[BARS])
{
	char path[TREE_PATH];
	char *text = tree_text(m->tree, function_path(path, device, "resource"), TREE_TEXT);
	const char *line = text;
	int count = 0;

	while (line && count < BARS &&
	       sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64, &bars[count].start,
		      &bars[count].end, &bars[count].flags) == 3) {
		count++;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	free(text);
	return count;
}

static bool has_bar_place(const struct bar *bar)
{
	return bar->flags & RESOURCE_MEMORY && !(bar->flags & RESOURCE_UNSET) && bar->start &&
	       bar->end > bar->start;
}

void check_bars(const struct machine *m, const struct function *device, struct finding *f)
{
	static const int wanted[] = {EMBENG_BAR_REGISTERS, EMBENG_BAR_DOORBELLS, EMBENG_BAR_MSIX};
	struct bar bars[BARS];
	int count = read_bars(m, device, bars);

	if (!count) {
		found_nothing(f, "the kernel does not say where its BARs are");
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (wanted[i] < count && has_bar_place(&bars[wanted[i]]))
			continue;
		found_problem(f, CLI_DEVICE, "BAR %d has no place in the machine's addresses",
			      wanted[i]);
		found_fix(f, "Switch \"Above 4G decoding\" on in the machine's firmware setup, or "
			     "boot with pci=realloc; the kernel's log has the sizes that did not "
			     "fit: `dmesg | grep BAR`");
		return;
	}
	found_ok(f, "registers at 0x%" PRIx64 ", doorbells at 0x%" PRIx64,
		 bars[EMBENG_BAR_REGISTERS].start, bars[EMBENG_BAR_DOORBELLS].start);
}

void check_bars_place(const struct machine *m, const struct function *device, struct finding *f)
{
	struct bar bars[BARS];
	int count = read_bars(m, device, bars);

	for (int i = 0; i < count; i++) {
		uint64_t bytes = bars[i].end - bars[i].start + 1;

		if (!has_bar_place(&bars[i]) || !(bars[i].flags & RESOURCE_WIDE) ||
		    bars[i].start >> 32 || bytes < LARGE_BAR)
			continue;
		found_warning(f, "BAR %d has %" PRIu64 " MiB below 4 GiB and could be above", i,
			      bytes >> 20);
		found_fix(f, "Switch \"Above 4G decoding\" on in the machine's firmware setup");
		return;
	}
	found_ok(f, "no large BAR is below 4 GiB");
}
