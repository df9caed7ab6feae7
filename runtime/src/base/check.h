/* SPDX-License-Identifier: MIT */
/* Checks of configurations. @where starts the sentence of a failure, such as "table users". */
#ifndef EMBENG_CHECK_H
#define EMBENG_CHECK_H

#include <stdbool.h>

#include "error.h"

/* Longest name, without the zero byte: it must fit struct embeng_record_name. */
#define NAME_MAX_BYTES 63

/*
 * config_take() - copy a caller's structure that begins with its size
 * @known: size of the structure in this library
 *
 * A newer caller may have a larger structure, as long as the part that is unknown here is zero.
 */
int config_take(void *to, const void *from, size_t known, const char *what);

/* The same of a structure that had @before bytes once: an older caller gives these, and the rest is zero. */
int config_take_grown(void *to, const void *from, size_t before, size_t known, const char *what);

/* Checks the name that a program gave to a @what. */
int name_check(const char *what, const char *name);

/* Number of bytes before the first one that is not UTF-8, or strlen(text) if there is none. */
size_t utf8_good(const char *text);

/* Return: 0 if @ok, else -ERANGE with a sentence that says what is @allowed. */
int number_check(bool ok, const char *where, const char *what, float value, const char *allowed);

#endif
