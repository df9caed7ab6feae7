/* SPDX-License-Identifier: MIT */
/* Converts the optimizers of vectors to the library's structure. */
#ifndef CLI_VECTOR_SETTINGS_H
#define CLI_VECTOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "../../json/json_read.h"
#include "embeng.h"

/* A key that stands for one member of &struct embeng_optimizer. */
struct setting {
	const char *key;
	enum { SETTING_NUMBER, SETTING_SWITCH, SETTING_INT, SETTING_TRISTATE, SETTING_NAME } type;
	size_t at;
};

/* Finds a key. Return: NULL if it is unknown or is no plain member. */
const struct setting *setting_find(const char *key);

/*
 * Converts a checked @spec, with defaults filled in. The texts are those of @spec; the array @dynamic
 * is the caller's, to free(). Return: false for an unknown kind.
 */
bool optimizer_read(const struct json *spec, struct embeng_optimizer *optimizer);

/* Writes the spec that optimizer_read() reads, with all keys. Return: NULL for no optimizer. */
struct json_object *optimizer_write(const struct embeng_optimizer *optimizer);

#endif
