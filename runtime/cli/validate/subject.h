/* SPDX-License-Identifier: MIT */
/* The device that is validated, and how thoroughly. */
#ifndef CLI_VALIDATE_SUBJECT_H
#define CLI_VALIDATE_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng.h"

#include "../board/finding.h"

#define SUBJECT_PATH 192

/**
 * struct subject - a device, and what was known of it before the first check
 * @device: name for embeng_open()
 * @soft: it is a soft device
 * @full: checks take the time that they need, and not only some seconds
 * @allow_reset: the caller allows resets, which other programs do not survive
 * @seed: everything that is drawn at random follows from it
 * @round: number of the round, from 1, which changes what is drawn
 * @memory_bytes: bytes of table memory that suite memory covers
 * @node: path of the device node, "" for a soft device
 * @address: PCI address, such as "0000:01:00.0", or ""
 * @function: folder of the PCI function in sysfs, or ""
 * @lost_data: uncorrectable errors of the table memory that were counted before the first check
 * @bus_errors: errors that the bus had counted before the first check
 */
struct subject {
	const char *device;
	struct embeng_device_info info;
	bool soft, full, allow_reset;
	uint64_t seed, round, memory_bytes;
	char node[SUBJECT_PATH], address[32], function[SUBJECT_PATH];
	uint64_t lost_data, bus_errors;
};

/*
 * Fills in node, address and function by what info says, and the counts of now. @root: folder that
 * stands for the root of the file system, "" for the real one.
 */
void subject_begin(struct subject *s, const char *root);

/* The first bytes of an attribute of the function, without the line's end. Return: false without one. */
bool subject_text(const struct subject *s, const char *attribute, char *text, size_t size);

/* An attribute that begins with a number. Return: false if it is not there or is none. */
bool subject_number(const struct subject *s, const char *attribute, uint64_t *value);

/*
 * Errors that the table memory did not correct since the first check, which explain whatever else
 * fails; 0 for a device that does not count them.
 */
uint64_t subject_lost_data(const struct subject *s);

#endif
