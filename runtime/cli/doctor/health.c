// SPDX-License-Identifier: MIT
/*
 * Checks of a device that the driver is bound to, by the attributes that docs/abi describes: whether
 * it was given up or reset, whether it can be read, and its errors and temperature.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"

/* A reset takes up to a minute; the driver then gives the device up. */
#define READINGS_OLD_MS 5000u
/* Thousandths of a degree below the critical temperature at which a device counts as hot. */
#define HOT_MARGIN 5000

void check_wedged(const struct machine *m, const struct function *device, struct finding *f)
{
	uint64_t wedged;

	if (!read_device_number(m, device, "resets/wedged", &wedged)) {
		found_nothing(f, "the driver does not say whether it is wedged");
		return;
	}
	if (!wedged) {
		found_ok(f, "it is not wedged");
		return;
	}
	found_problem(f, CLI_DEVICE, "it is wedged: it did not come back from a reset");
	found_fix(
		f,
		"As root: `echo %s >/sys/bus/pci/drivers/embeng/unbind`, then the same with bind; "
		"`embeng regs --log` says what happened. If it does not bind, switch the machine "
		"off and on",
		device->address);
}

void check_readings(const struct machine *m, const struct function *device, struct finding *f)
{
	uint64_t age;

	if (!read_device_number(m, device, "readings_age_ms", &age)) {
		found_nothing(f, "the driver does not say how old its readings are");
		return;
	}
	if (age < READINGS_OLD_MS) {
		found_ok(f, "the device can be read");
		return;
	}
	found_warning(f, "the device could not be read for %" PRIu64 " s", age / 1000);
	found_fix(f, "Wait a minute and look again; `dmesg | grep %s` says what the driver does",
		  device->address);
}

void check_hung(const struct machine *m, const struct function *device, struct finding *f)
{
	static const char *const rungs[] = {"queues", "contexts", "engines", "functions"};
	uint64_t counts[4] = {0}, all = 0;
	char path[TREE_PATH], dump[64];

	for (size_t i = 0; i < 4; i++) {
		tree_path(path, "resets/%s", rungs[i]);
		if (read_device_number(m, device, path, &counts[i]))
			all |= counts[i];
	}
	if (!all) {
		found_ok(f, "nothing had to be reset since the driver was bound");
		return;
	}
	found_warning(f,
		      "since the driver was bound it was reset: %" PRIu64 " queues, %" PRIu64
		      " contexts, the engine %" PRIu64 " times, the function %" PRIu64 " times",
		      counts[0], counts[1], counts[2], counts[3]);
	if (!tree_link(m->tree, function_path(path, device, "devcoredump"), dump, sizeof(dump)))
		found_fix(
			f,
			"The state of the device when it hung is in "
			"/sys/class/devcoredump/%s/data for five minutes; `embeng regs --log` has "
			"its event log",
			dump);
	else
		found_fix(
			f,
			"`dmesg | grep %s` and `embeng regs --log`, as root, say which program and "
			"which command hung",
			device->address);
}

void check_ecc(const struct machine *m, const struct function *device, struct finding *f)
{
	uint64_t corrected = 0, lost = 0;

	if (!read_device_number(m, device, "counters/ecc_correctable", &corrected) ||
	    !read_device_number(m, device, "counters/ecc_uncorrectable", &lost)) {
		found_nothing(f, "the driver does not count them");
		return;
	}
	if (!corrected && !lost) {
		found_ok(f, "no memory error since the driver was bound");
		return;
	}
	found_warning(f, "%" PRIu64 " memory errors were corrected, %" PRIu64 " lost data",
		      corrected, lost);
	found_fix(f, "Watch whether the counts grow; a board that loses data again has to be "
		     "replaced. Tables that were lost come back from a checkpoint");
}

static bool read_temperature_of(const struct machine *m, const char *sensors, const char *name,
				uint64_t *value)
{
	char path[TREE_PATH];

	return !tree_number(m->tree, tree_path(path, "%s/%s", sensors, name), value);
}

void check_temperature(const struct machine *m, const struct function *device, struct finding *f)
{
	uint64_t now, limit;
	char sensors[TREE_PATH];

	if (!function_sensors(m->tree, device->address, sensors) ||
	    !read_temperature_of(m, sensors, "temp1_input", &now) ||
	    !read_temperature_of(m, sensors, "temp1_crit", &limit)) {
		found_nothing(f, "the device does not measure it");
		return;
	}
	if (now + HOT_MARGIN < limit) {
		found_ok(f, "%" PRIu64 " degrees Celsius of at most %" PRIu64, now / 1000,
			 limit / 1000);
		return;
	}
	found_warning(f, "%" PRIu64 " degrees Celsius, and %" PRIu64 " are critical", now / 1000,
		      limit / 1000);
	found_fix(f, "Look after fans, dust and the air in front of the machine");
}
