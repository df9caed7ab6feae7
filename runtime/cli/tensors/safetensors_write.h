/* SPDX-License-Identifier: MIT */
/* Writes the front of a .safetensors file. */
#ifndef CLI_SAFETENSORS_WRITE_H
#define CLI_SAFETENSORS_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A matrix of f32, whose numbers the caller writes behind the front. */
struct safetensors_array {
	const char *name;
	int64_t rows, dim;
};

/*
 * Writes the length and the header of a file of these arrays, whose numbers follow one array after
 * the other, little-endian. Return: 0, -ENOMEM, -EINVAL (a name is not UTF-8) or the stream's errno.
 */
int safetensors_front(FILE *out, const struct safetensors_array *arrays, size_t count);

#endif
