// SPDX-License-Identifier: MIT
/* Arms the emulator's faults through debugfs, and reads how often they struck. */
#include "fault_file.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>

#define FAULTS "/sys/kernel/debug/embeng_emu/0/faults"

int fault_write(const char *fault, const char *word, uint64_t value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), FAULTS "/%s/%s", fault, word);
	file = fopen(path, "w");
	ck_assert_msg(file, "%s", path);
	fprintf(file, "%llu", (unsigned long long)value);
	return fclose(file) ? -errno : 0;
}

void fault_file_set(const char *fault, const char *word, uint64_t value)
{
	ck_assert_int_eq(fault_write(fault, word, value), 0);
}

uint64_t fault_get(const char *fault, const char *word)
{
	unsigned long long value;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), FAULTS "/%s/%s", fault, word);
	file = fopen(path, "r");
	ck_assert_msg(file, "%s", path);
	ck_assert_int_eq(fscanf(file, "%llu", &value), 1);
	fclose(file);
	return value;
}

void fault_arm(const char *fault, uint32_t count)
{
	fault_file_set(fault, "target", UINT32_MAX);
	fault_file_set(fault, "per_mille", 1000);
	fault_file_set(fault, "tries", 0);
	fault_file_set(fault, "count", count);
}
