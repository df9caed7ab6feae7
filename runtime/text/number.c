// SPDX-License-Identifier: MIT
/*
 * Reads whole numbers from text. It is a room of its own because the library, the command and the
 * program that packs firmware have it inside of themselves, and agree on what a number is.
 *
 * The functions keep nothing and take no lock.
 */
#include "number.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The value of a digit, or one that no base has. */
static unsigned int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned int)(c - 'A') + 10;
	return 16;
}

int number_read(const char *text, size_t length, unsigned int base, uint64_t *value)
{
	uint64_t number = 0;
	bool beyond = false;

	if (!length)
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		unsigned int digit = digit_value(text[i]);

		if (digit >= base)
			return -EINVAL;
		beyond |= __builtin_mul_overflow(number, base, &number);
		beyond |= __builtin_add_overflow(number, digit, &number);
	}
	if (beyond)
		return -ERANGE;
	*value = number;
	return 0;
}

int number_read_code(const char *text, uint64_t *value)
{
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return number_read(text + 2, strlen(text + 2), 16, value);
	return number_read(text, strlen(text), 10, value);
}

int number_read_signed(const char *text, int64_t least, int64_t most, int64_t *value)
{
	bool negative = *text == '-';
	uint64_t magnitude;
	int64_t number;
	int ret = number_read(text + negative, strlen(text + negative), 10, &magnitude);

	if (ret)
		return ret;
	if (magnitude > (uint64_t)INT64_MAX + negative)
		return -ERANGE;
	/* Negated without a sign, because the smallest number has no positive one. */
	number = (int64_t)(negative ? -magnitude : magnitude);
	if (number < least || number > most)
		return -ERANGE;
	*value = number;
	return 0;
}
