// SPDX-License-Identifier: MIT
/*
 * Finds the faults of an emulated device in debugfs, reads and writes them. Their names and words come
 * from the emulator, which has a folder for each of them, so that a fault that a later
 * emulator has is known here without a change.
 *
 * Everything is in a structure of the caller's. A tree that somebody recorded is read like the
 * machine's own and may say anything.
 */
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "embeng.h"
#include "embeng_regs.h"

#include "../device/device.h"
#include "../frame/edit_distance.h"
#include "../frame/exit.h"

#define FOLDER "/sys/kernel/debug/embeng_emu"

static const struct {
	const char *name;
	uint64_t value;
} boot_errors[] = {
#define ROW(name, value, text) {#name, value},
	EMBENG_BOOT_ERROR_TABLE(ROW)
#undef ROW
};

#define BOOT_ERRORS (sizeof(boot_errors) / sizeof(boot_errors[0]))

const char *fault_boot_error_name(uint64_t value)
{
	for (size_t i = 0; i < BOOT_ERRORS; i++) {
		if (boot_errors[i].value == value)
			return boot_errors[i].name;
	}
	return NULL;
}

int64_t fault_boot_error(const char *name)
{
	for (size_t i = 0; i < BOOT_ERRORS; i++) {
		if (!strcasecmp(boot_errors[i].name, name))
			return (int64_t)boot_errors[i].value;
	}
	return -1;
}

static int read_fault(struct tree *tree, const struct faults *f, struct fault *fault)
{
	const struct {
		const char *name;
		char *text;
		size_t size;
		uint64_t *number;
	} files[] = {
		{"about", fault->about, sizeof(fault->about), NULL},
		{"target_is", fault->target_is, sizeof(fault->target_is), NULL},
		{"value_is", fault->value_is, sizeof(fault->value_is), NULL},
		{"count", NULL, 0, &fault->count},
		{"per_mille", NULL, 0, &fault->per_mille},
		{"target", NULL, 0, &fault->target},
		{"seed", NULL, 0, &fault->seed},
		{"value", NULL, 0, &fault->value},
		{"value_default", NULL, 0, &fault->value_default},
		{"tries", NULL, 0, &fault->tries},
		{"hits", NULL, 0, &fault->hits},
	};
	char path[TREE_PATH];
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(files) / sizeof(files[0]); i++) {
		tree_path(path, FOLDER "/%u/faults/%s/%s", f->number, fault->name, files[i].name);
		if (files[i].number)
			err = tree_number(tree, path, files[i].number);
		else
			err = tree_line(tree, path, files[i].text, files[i].size);
	}
	return err;
}

/* The function's place is told by the name of the bus below the emulator's platform device. */
static void read_address(struct tree *tree, unsigned int number, char *address, size_t size)
{
	struct tree_names names;
	char path[TREE_PATH];

	*address = '\0';
	tree_path(path, "/sys/devices/platform/embeng_emu.%u", number);
	if (tree_list(tree, path, &names))
		return;
	for (size_t i = 0; i < names.count; i++) {
		if (!strncmp(names.list[i], "pci", 3) && strchr(names.list[i], ':'))
			snprintf(address, size, "%.20s:00.0", names.list[i] + 3);
	}
	tree_names_free(&names);
}

static int refuse_access(const struct output *out, struct tree *tree, int err)
{
	if (err == -EACCES || err == -EPERM)
		return output_fail(
			out, CLI_PERMISSION, err,
			"Run the command as root: only an administrator may break devices",
			FOLDER " may not be read");
	if (tree_kind(tree, "/sys/module/embeng_emu") == TREE_NOTHING)
		return output_fail(out, CLI_NO_DEVICE, ENODEV, "modprobe embeng_emu",
				   "there is no emulated device: the module embeng_emu is not "
				   "loaded");
	if (tree_kind(tree, FOLDER) == TREE_NOTHING)
		return output_fail(
			out, CLI_UNSUPPORTED, ENOENT, "mount -t debugfs debugfs /sys/kernel/debug",
			FOLDER " is not there: debugfs is not mounted, or the kernel has "
			       "none");
	return output_fail(out, exit_of_errno(err), err, NULL, FOLDER ": %s", strerror(-err));
}

/* The PCI address of the device that the user names, without "pci:". */
static int name_address(const struct output *out, const char *device, char *address, size_t size)
{
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	int err;

	if (!strncmp(device, "pci:", 4)) {
		snprintf(address, size, "%s", device + 4);
		return CLI_OK;
	}
	err = embeng_device_info(device, &info);
	if (!strcmp(info.kind, "soft") || !strncmp(device, "soft", 4))
		return output_fail(out, CLI_UNSUPPORTED, ENOTSUP,
				   "The module embeng_emu makes devices that have faults",
				   "the device %s is in software and has no faults to inject",
				   device);
	if (err && !*info.address)
		return output_library_failure(out, err, device_hint);
	snprintf(address, size, "%s", info.address + (strncmp(info.address, "pci:", 4) ? 0 : 4));
	return CLI_OK;
}

static int choose_named(const struct output *out, struct tree *tree,
			const struct tree_names *numbers, struct faults *f)
{
	char wanted[64];
	int code = name_address(out, f->device, wanted, sizeof(wanted));

	if (code)
		return code;
	for (size_t i = 0; i < numbers->count; i++) {
		f->number = (unsigned int)strtoul(numbers->list[i], NULL, 10);
		read_address(tree, f->number, f->address, sizeof(f->address));
		if (!strcmp(f->address, wanted))
			return CLI_OK;
	}
	return output_fail(out, CLI_NO_DEVICE, ENODEV, device_hint,
			   "%s is no device of the emulator, so it has no faults to inject",
			   f->device);
}

static int choose_emulated(const struct output *out, struct tree *tree,
			   const struct tree_names *numbers, struct faults *f)
{
	if (f->device)
		return choose_named(out, tree, numbers, f);
	if (numbers->count == 1) {
		f->number = (unsigned int)strtoul(numbers->list[0], NULL, 10);
		read_address(tree, f->number, f->address, sizeof(f->address));
		return CLI_OK;
	}
	if (numbers->count)
		return output_fail(out, CLI_USAGE, EINVAL,
				   "Name one with -d, as embeng list shows it",
				   "there are %zu emulated devices", numbers->count);
	return output_fail(out, CLI_NO_DEVICE, ENODEV,
			   "mkdir /sys/kernel/config/embeng_emu/NAME makes one",
			   "the emulator is loaded, but has no device");
}

static int read_fault_list(const struct output *out, struct tree *tree, struct faults *f)
{
	struct tree_names names;
	char path[TREE_PATH];
	int err = tree_list(tree, tree_path(path, FOLDER "/%u/faults", f->number), &names);

	for (size_t i = 0; !err && i < names.count && f->count < FAULTS_MOST; i++) {
		struct fault *fault = &f->list[f->count];

		snprintf(fault->name, sizeof(fault->name), "%s", names.list[i]);
		err = read_fault(tree, f, fault);
		f->count += !err;
		if (err)
			output_fail(out, exit_of_errno(err), err,
				    "The emulator may be older than the command",
				    "%s/%s: a file is missing or cannot be read: %s", path,
				    names.list[i], strerror(-err));
	}
	if (err && !names.count)
		output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path, strerror(-err));
	tree_names_free(&names);
	return err ? exit_of_errno(err) : CLI_OK;
}

int faults_read(const struct output *out, struct faults *f)
{
	struct tree_names numbers = {0};
	struct tree *tree;
	int err = tree_open(f->root, &tree), code;

	if (err)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s",
				   f->root ? f->root : "/", strerror(-err));
	err = tree_list(tree, FOLDER, &numbers);
	code = err ? refuse_access(out, tree, err) : choose_emulated(out, tree, &numbers, f);
	if (!code)
		code = read_fault_list(out, tree, f);
	tree_names_free(&numbers);
	(void)tree_close(tree);
	return code;
}

struct fault *faults_find(const struct output *out, struct faults *f, const char *name)
{
	const char *nearest = NULL;
	size_t least = 6;
	char hint[128];

	for (size_t i = 0; i < f->count; i++) {
		size_t distance = edit_distance(name, f->list[i].name);

		if (!strcmp(name, f->list[i].name))
			return &f->list[i];
		if (distance < least) {
			least = distance;
			nearest = f->list[i].name;
		}
	}
	if (nearest)
		snprintf(hint, sizeof(hint), "Did you mean: %s", nearest);
	output_fail(out, CLI_USAGE, EINVAL, nearest ? hint : "embeng fault list shows all faults",
		    "there is no fault '%s'", name);
	return NULL;
}

int fault_write(const struct output *out, const struct faults *f, const struct fault *fault,
		const char *setting, uint64_t value)
{
	char path[TREE_PATH + 256], digits[32];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64 "\n", value), fd, err = 0;

	snprintf(path, sizeof(path), "%s" FOLDER "/%u/faults/%s/%s", f->root ? f->root : "",
		 f->number, fault->name, setting);
	fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || write(fd, digits, (size_t)length) != length)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		return CLI_OK;
	return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", path, strerror(err));
}
