/* SPDX-License-Identifier: MIT */
/* Errors in a vector, with their place in its file. */
#ifndef CLI_VECTOR_PLACE_H
#define CLI_VECTOR_PLACE_H

#include <stddef.h>

/* The place of a value: a chain up to the root, which becomes text only for an error. */
struct vector_place {
	const struct vector_place *above;
	const char *key; /* NULL for an element of a list */
	size_t index;
};

/* Sets the buffer of VECTOR_ERROR_TEXT bytes that errors are written to from now on. */
void vector_malformed_into(char *text);

/* Writes an error with its place. Returns -1. */
int vector_malformed(const struct vector_place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
