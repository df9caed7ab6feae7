// SPDX-License-Identifier: MIT
/*
 * Checks of the driver in the kernel: whether it is loaded, whether the kernel is sound, and
 * whether it is bound to a device.
 */
#include <stdio.h>
#include <string.h>

#include "checks.h"

/* modprobe would fail in the first two cases, and say less about them. */
static void explain_unloaded(const struct machine *m, struct finding *f)
{
	char path[TREE_PATH];
	uint64_t closed;

	if (!tree_number(m->tree, "/proc/sys/kernel/modules_disabled", &closed) && closed) {
		found_problem(f, CLI_NO_DRIVER,
			      "the module embeng is not loaded, and the kernel takes no module "
			      "until it is started again (kernel.modules_disabled)");
		found_fix(f, "Take kernel.modules_disabled out of /etc/sysctl.conf and "
			     "/etc/sysctl.d, or put embeng into /etc/modules-load.d, which comes "
			     "first; then start the machine again");
	} else if (find_driver_module(m, m->release, path) &&
		   tree_kind(m->tree, path) == TREE_NOTHING) {
		found_problem(f, CLI_NO_DRIVER,
			      "the module embeng is not loaded, and %.300s, of which modprobe "
			      "knows, is not there",
			      path);
		found_fix(f, "As root: `dkms install --force embeng`, or where the module was "
			     "installed by hand install it again; then `depmod -a` and `modprobe "
			     "embeng`");
	} else {
		found_problem(f, CLI_NO_DRIVER, "the module embeng is not loaded");
		found_fix(f,
			  "`modprobe embeng` as root; if that says 'Key was rejected by service', "
			  "enrol the key that signed the module with `mokutil --import`");
	}
}

void check_driver_loaded(const struct machine *m, const struct function *device, struct finding *f)
{
	char state[32];

	(void)device;
	if (!is_driver_loaded(m)) {
		explain_unloaded(m, f);
		return;
	}
	if (tree_line(m->tree, "/sys/module/embeng/initstate", state, sizeof(state)) ||
	    !strcmp(state, "live")) {
		found_ok(f, "the module embeng is loaded");
		return;
	}
	found_warning(f, "the module embeng is '%.31s': it is just loaded or unloaded", state);
	found_fix(f, "Look again in a minute; if it stays so, the end of `dmesg` says what it "
		     "waits for");
}

/* Bits of /proc/sys/kernel/tainted after which nothing in the kernel can be relied on. */
static const struct {
	uint64_t bit;
	const char *words;
} taints[] = {
	{1u << 7, "the kernel has had an oops"},
	{1u << 5, "a page of memory was found broken"},
	{1u << 4, "the processor reported a machine check"},
	{1u << 14, "a processor hung (soft lockup)"},
	{1u << 9, "the kernel has warned of an error of its own"},
	{1u << 1, "a module was loaded by force"},
};

void check_taint(const struct machine *m, const struct function *device, struct finding *f)
{
	uint64_t bits;

	(void)device;
	if (tree_number(m->tree, "/proc/sys/kernel/tainted", &bits)) {
		found_nothing(f, "the kernel does not tell");
		return;
	}
	for (size_t i = 0; i < sizeof(taints) / sizeof(taints[0]); i++) {
		if (!(bits & taints[i].bit))
			continue;
		found_warning(f, "%s since it started (tainted %llu)", taints[i].words,
			      (unsigned long long)bits);
		found_fix(f, "Look for the first error in `dmesg`, and start the machine again");
		return;
	}
	found_ok(f, "no error since the kernel started%s",
		 bits & 1u << 13 ? "; a module is unsigned" : "");
}

static void explain_unbound(const struct machine *m, const struct function *device,
			    struct finding *f)
{
	char override[64];

	if (read_device_line(m, device, "driver_override", override, sizeof(override)) &&
	    *override && strcmp(override, "(null)") && strcmp(override, "embeng")) {
		found_problem(f, CLI_NO_DRIVER, "driver_override keeps it for the driver '%.60s'",
			      override);
		found_fix(f,
			  "As root: `echo >/sys/bus/pci/devices/%s/driver_override`, then `echo %s "
			  ">/sys/bus/pci/drivers/embeng/bind`",
			  device->address, device->address);
		return;
	}
	found_problem(f, CLI_NO_DRIVER, "the driver is loaded, but not bound to it");
	found_fix(f, "`echo %s >/sys/bus/pci/drivers/embeng/bind` as root", device->address);
}

void check_driver_bound(const struct machine *m, const struct function *device, struct finding *f)
{
	if (!strcmp(device->driver, "embeng")) {
		found_ok(f, "the driver is bound");
		return;
	}
	if (!*device->driver) {
		explain_unbound(m, device, f);
		return;
	}
	found_problem(f, CLI_BUSY, "the driver '%s' has it", device->driver);
	found_fix(f,
		  "As root: `echo %s >/sys/bus/pci/drivers/%s/unbind`, `echo "
		  ">/sys/bus/pci/devices/%s/driver_override`, then `echo %s "
		  ">/sys/bus/pci/drivers/embeng/bind`",
		  device->address, device->driver, device->address, device->address);
}
