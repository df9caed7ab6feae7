/* SPDX-License-Identifier: MIT */
/* Texts numbered in the order in which they were first seen. */
#ifndef ITEM2VEC_NAMES_H
#define ITEM2VEC_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names {
	char **text;
	size_t count, capacity;
	uint32_t *slots; /* number + 1 of a text, 0: free; open addressing */
	size_t slot_count;
};

/* The number of a text, added when it is new, or -ENOMEM. */
int64_t names_add(struct names *names, const char *text, size_t length);

/* The number of a text, or -ENOENT. */
int64_t names_find(const struct names *names, const char *text, size_t length);

void names_free(struct names *names);

#endif
