// SPDX-License-Identifier: MIT
/*
 * Reads whole numbers that a person typed, with a suffix for thousands. Verbs of several folders
 * take such numbers.
 */
#include <string.h>

#include "numbers.h"

int count_read(const char *text, size_t length, int64_t least, int64_t most, int64_t *value)
{
	static const char suffixes[] = "kMG";
	const char *suffix = length ? memchr(suffixes, text[length - 1], 3) : NULL;
	int64_t n = 0;

	if (suffix)
		length--;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, text[i] - '0', &n))
			return -1;
	}
	for (const char *s = suffixes; suffix && s <= suffix; s++) {
		if (__builtin_mul_overflow(n, 1000, &n))
			return -1;
	}
	if (!length || n < least || n > most)
		return -1;
	*value = n;
	return 0;
}
