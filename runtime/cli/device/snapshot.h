/* SPDX-License-Identifier: MIT */
/* Snapshots of registers: writing one to a file, reading one, and comparing two. */
#ifndef CLI_DEVICE_SNAPSHOT_H
#define CLI_DEVICE_SNAPSHOT_H

#include "../frame/output.h"
#include "registers.h"

#define SNAPSHOT_MOST 512 /* registers */
#define SNAPSHOT_NAME 64
#define SNAPSHOT_WHY 256

/**
 * struct snapshot - registers of a device at one moment
 * @file: the file that it was read from, or NULL
 */
struct snapshot {
	const char *file;
	char device[128];
	size_t count;
	struct {
		char name[SNAPSHOT_NAME];
		uint64_t value;
	} registers[SNAPSHOT_MOST];
};

/* All registers of a copy of the register page. */
void snapshot_take(struct snapshot *s, const char *device, const char *page);

/**
 * snapshot_parse() - read a snapshot from the document of `embeng regs --json`
 * @why: on failure filled with a sentence about the text
 *
 * Return: 0 or a negative errno.
 */
int snapshot_parse(struct snapshot *s, const char *text, size_t length, char why[SNAPSHOT_WHY]);

/* snapshot_parse() for a file, whose name @why begins with. */
int snapshot_load(struct snapshot *s, const char *path, char why[SNAPSHOT_WHY]);

/* Shows what is different in @after. Return: the exit code. */
int snapshot_compare(const struct output *out, const struct snapshot *before,
		     const struct snapshot *after);

#endif
