/* SPDX-License-Identifier: MIT */
/* How often each interrupt vector of a device has fired. */
#ifndef CLI_VALIDATE_VECTORS_H
#define CLI_VALIDATE_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define VECTORS_MOST 64

/**
 * struct vectors - counts by vector; vector 0 serves the driver's own queue
 * @count: number of vectors
 * @fired: [@count] interrupts of all processors
 */
struct vectors {
	size_t count;
	uint64_t fired[VECTORS_MOST];
};

/* Reads the lines of a device from text in the form of /proc/interrupts. */
void vectors_parse(FILE *file, const char *address, struct vectors *v);

/* vectors_parse() of /proc/interrupts. Return: false if it has no line of the device. */
bool vectors_read(const char *address, struct vectors *v);

#endif
