/* SPDX-License-Identifier: MIT */
/* A vector's optimizer as the library takes it. */
#ifndef CLI_VECTOR_SETTINGS_H
#define CLI_VECTOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "../../json/json_read.h"
#include "embeng.h"

/* A key that is one member of &struct embeng_optimizer. */
struct setting {
	const char *key;
	enum { SETTING_NUMBER, SETTING_SWITCH, SETTING_INT, SETTING_TRISTATE, SETTING_NAME } type;
	size_t at;
};

/* NULL: the key is none, or no plain member. */
const struct setting *setting_find(const char *key);

/* The optimizer of a checked @spec, defaults filled in. False: no such kind. */
bool optimizer_read(const struct json *spec, struct embeng_optimizer *optimizer);

/* What optimizer_read() makes this optimizer of, whole; NULL of none. */
struct json_object *optimizer_write(const struct embeng_optimizer *optimizer);

#endif
