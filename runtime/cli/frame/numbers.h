/* SPDX-License-Identifier: MIT */
/* Whole numbers as a person types them. */
#ifndef CLI_NUMBERS_H
#define CLI_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/**
 * count_read() - a whole number, "20000", "20k", "3M" or "1G": thousands each
 *
 * Return: 0, or -1 when it is none or not within @least and @most.
 */
int count_read(const char *text, size_t length, int64_t least, int64_t most, int64_t *value);

#endif
