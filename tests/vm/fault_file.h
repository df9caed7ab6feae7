/* SPDX-License-Identifier: MIT */
/* The emulator's faults, through debugfs. */
#ifndef EMBENG_TESTS_FAULT_FILE_H
#define EMBENG_TESTS_FAULT_FILE_H

#include <stdint.h>

/* A word of a fault: count, per_mille, target, seed, value, tries, hits. Fails the test. */
void fault_file_set(const char *fault, const char *word, uint64_t value);
uint64_t fault_get(const char *fault, const char *word);
/* 0 or -errno. */
int fault_write(const char *fault, const char *word, uint64_t value);

/* Makes a fault strike at the next @count occasions, whatever was set before; 0: never. */
void fault_arm(const char *fault, uint32_t count);

#endif
