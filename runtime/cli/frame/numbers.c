// SPDX-License-Identifier: MIT
/*
 * Reads whole numbers that a person typed, with a suffix for thousands. Verbs of several folders
 * take such numbers.
 */
#include <string.h>

#include "../../text/number.h"
#include "numbers.h"

int count_read(const char *text, size_t length, int64_t least, int64_t most, int64_t *value)
{
	static const char suffixes[] = "kMG";
	const char *suffix = length ? memchr(suffixes, text[length - 1], 3) : NULL;
	uint64_t digits;
	int64_t n;

	if (number_read(text, length - !!suffix, 10, &digits) ||
	    __builtin_add_overflow(digits, 0, &n))
		return -1;
	for (const char *s = suffixes; suffix && s <= suffix; s++) {
		if (__builtin_mul_overflow(n, 1000, &n))
			return -1;
	}
	if (n < least || n > most)
		return -1;
	*value = n;
	return 0;
}
