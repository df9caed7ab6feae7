/* SPDX-License-Identifier: MIT */
/* How much two names differ, for messages that name what was meant. */
#ifndef CLI_EDIT_DISTANCE_H
#define CLI_EDIT_DISTANCE_H

#include <stddef.h>

/* Longer names are compared in this many of their first bytes. */
#define EDIT_DISTANCE_BYTES 64

/* Bytes to insert, remove or replace to make one of the other; case does not count. */
size_t edit_distance(const char *a, const char *b);

#endif
