/* SPDX-License-Identifier: MIT */
/* Faults of an emulated device, as its files in debugfs show them. */
#ifndef CLI_FAULT_FAULTS_H
#define CLI_FAULT_FAULTS_H

#include <stdint.h>

#include "../frame/output.h"
#include "../system/tree.h"

#define FAULT_FOREVER UINT32_MAX
#define FAULT_ANY UINT32_MAX
#define FAULT_NAME 64
#define FAULT_WORDS 160
#define FAULTS_MOST 64

/**
 * struct fault - a fault with its settings; embeng_emu(4) describes them
 * @about: the effect of a strike
 * @target_is: kind of the thing that it strikes
 * @value_is: unit of @value, or an empty text if the fault does not use it
 */
struct fault {
	char name[FAULT_NAME], about[FAULT_WORDS], target_is[FAULT_NAME], value_is[FAULT_NAME];
	uint64_t count, per_mille, target, seed, value, value_default, tries, hits;
};

/**
 * struct faults - all faults of one emulated device
 * @root: folder with a recorded tree, or NULL for this machine
 * @device: the device by the name that the user gave, or NULL for the only one
 * @number: the emulator's number of the device
 * @address: PCI address, or an empty text while the device has no function
 */
struct faults {
	const char *root, *device;
	unsigned int number;
	char address[32];
	size_t count;
	struct fault list[FAULTS_MOST];
};

/* Finds the device and reads its faults. Return: CLI_OK, or an exit code after the report. */
int faults_read(const struct output *out, struct faults *f);

/* The fault of that name. NULL after the report of a name that is none, with the nearest one. */
struct fault *faults_find(const struct output *out, struct faults *f, const char *name);

/* Writes one setting of a fault. Return: CLI_OK, or an exit code after the report. */
int fault_write(const struct output *out, const struct faults *f, const struct fault *fault,
		const char *setting, uint64_t value);

/* Name of a boot error, or NULL; and the number of a name, or -1. */
const char *fault_boot_error_name(uint64_t value);
int64_t fault_boot_error(const char *name);

#endif
