/* SPDX-License-Identifier: MIT */
/* Names the values of a checkpoint that are not finite. */
#ifndef CLI_VERIFY_FINITE_H
#define CLI_VERIFY_FINITE_H

#include <json-c/json.h>

struct embeng_checkpoint;

/*
 * Prints a line for the first such value of parameters and slots of each table, or adds an entry to
 * @list, unless that is NULL. Return: 0, or what the reading failed with.
 */
int verify_finite(const char *dir, const struct embeng_checkpoint *c, struct json_object *list);

#endif
