/* SPDX-License-Identifier: MIT */
/* The hash FNV-1a, for texts in a table and to tell data sets apart. */
#ifndef ITEM2VEC_HASH_H
#define ITEM2VEC_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

static inline uint64_t hash_more(uint64_t h, const void *data, size_t length)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < length; i++)
		h = (h ^ bytes[i]) * 0x100000001b3u;
	return h;
}

#endif
