/* SPDX-License-Identifier: MIT */
/*
 * Whole numbers in text: what a user typed, a name, a file of digits. No function here skips
 * blanks, looks at the locale or takes a number that is followed by anything else.
 */
#ifndef EMBENG_NUMBER_H
#define EMBENG_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/**
 * number_read() - read a whole number that consists of digits alone
 * @text: first digit
 * @length: number of digits, at least 1; @text need not end behind them
 * @base: 10 or 16; hexadecimal digits may have either case
 * @value: the number; unchanged on failure
 *
 * Thread-safe, as all functions here.
 *
 * Return: 0, -EINVAL for anything that is no digit, or -ERANGE if 64 bits do not hold it.
 */
int number_read(const char *text, size_t length, unsigned int base, uint64_t *value);

/**
 * number_read_code() - read a whole number as C writes it: 17, or 0x11
 * @text: all of this must be the number
 * @value: the number; unchanged on failure
 *
 * A zero in front changes nothing: 010 is ten.
 *
 * Return: as number_read().
 */
int number_read_code(const char *text, uint64_t *value);

/**
 * number_read_signed() - read a decimal whole number that may have a minus sign
 * @text: all of this must be the number
 * @least: smallest number allowed
 * @most: largest number allowed
 * @value: the number; unchanged on failure
 *
 * Return: 0, -EINVAL if it is no whole number, or -ERANGE if it is not within the limits.
 */
int number_read_signed(const char *text, int64_t least, int64_t most, int64_t *value);

#endif
