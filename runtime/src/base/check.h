/* SPDX-License-Identifier: MIT */
/* Checks of what callers configure. @where starts the sentence, as "table users". */
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
 * A larger one of a newer caller is fine as long as it asks for nothing more.
 */
int config_take(void *to, const void *from, size_t known, const char *what);

/* A name that people gave to a @what. */
int name_check(const char *what, const char *name);

/* Bytes of a text before the first that is not UTF-8: all of them when text[...] is its end. */
size_t utf8_good(const char *text);

/* A number of which @ok says whether it is @allowed; else -ERANGE. */
int number_check(bool ok, const char *where, const char *what, float value, const char *allowed);

#endif
