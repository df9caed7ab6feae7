/* SPDX-License-Identifier: MIT */
/* A table that numbers texts in the order in which they were first seen. */
#ifndef ITEM2VEC_NAMES_H
#define ITEM2VEC_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names {
	char **text;
	size_t count, capacity;
	uint32_t *slots; /* open addressing: number + 1 of a text, 0: free */
	size_t slot_count;
};

/* Adds a text if it is new. Return: its number, or -ENOMEM. */
int64_t names_add(struct names *names, const char *text, size_t length);

/* Finds a text. Return: its number, or -ENOENT. */
int64_t names_find(const struct names *names, const char *text, size_t length);

void names_free(struct names *names);

#endif
