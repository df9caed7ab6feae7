/* SPDX-License-Identifier: MIT */
/* What is wrong with a vector, and where in its file. */
#ifndef CLI_VECTOR_PLACE_H
#define CLI_VECTOR_PLACE_H

#include <stddef.h>

/* A chain up to the root, written out only when something is wrong. */
struct vector_place {
	const struct vector_place *above;
	const char *key; /* NULL: an element */
	size_t index;
};

/* Where what is wrong is told from now on: VECTOR_ERROR_TEXT bytes. */
void vector_malformed_into(char *text);

/* Returns -1. */
int vector_malformed(const struct vector_place *place, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
