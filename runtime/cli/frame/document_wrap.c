// SPDX-License-Identifier: MIT
/*
 * The calls of json-c that allocate, as the command's linker sends them here (--wrap, see
 * runtime/meson.build): each ends the command when there is no memory, because json-c's own functions
 * assert when they are given the NULL that another one returned.
 *
 * It is apart from the command's library, whose unit tests are linked without that.
 */
#include "document.h"

#define NEED(name, parameters, arguments) \
	struct json_object *__real_##name parameters; \
	struct json_object *__wrap_##name parameters; \
	struct json_object *__wrap_##name parameters \
	{ \
		struct json_object *made = __real_##name arguments; \
\
		if (!made) \
			document_no_memory(); \
		return made; \
	}

NEED(json_object_new_object, (void), ())
NEED(json_object_new_array, (void), ())
NEED(json_object_new_string, (const char *text), (text))
NEED(json_object_new_boolean, (json_bool on), (on))
NEED(json_object_new_int, (int32_t number), (number))
NEED(json_object_new_int64, (int64_t number), (number))
NEED(json_object_new_uint64, (uint64_t number), (number))
NEED(json_object_new_double_s, (double number, const char *digits), (number, digits))

int __real_json_object_object_add(struct json_object *to, const char *key,
				  struct json_object *value);
int __wrap_json_object_object_add(struct json_object *to, const char *key,
				  struct json_object *value);
int __wrap_json_object_object_add(struct json_object *to, const char *key,
				  struct json_object *value)
{
	if (__real_json_object_object_add(to, key, value))
		document_no_memory();
	return 0;
}

int __real_json_object_array_add(struct json_object *to, struct json_object *value);
int __wrap_json_object_array_add(struct json_object *to, struct json_object *value);
int __wrap_json_object_array_add(struct json_object *to, struct json_object *value)
{
	if (__real_json_object_array_add(to, value))
		document_no_memory();
	return 0;
}
