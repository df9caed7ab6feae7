// SPDX-License-Identifier: MIT
/*
 * Notes what went wrong in a step of a vector: a sentence of the runner's or the library's, or the
 * failure that the report of the vector has.
 */
#include <stdarg.h>
#include <stdio.h>

#include "run.h"

int run_fail(struct run *r, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	return err;
}

int run_library(struct run *r, int err)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	return run_fail(r, err, "%s", error.text);
}

struct json_object *run_new_failure(struct run *r)
{
	json_object_put(r->failure);
	r->failure = json_object_new_object();
	json_object_object_add(r->failure, "message", json_object_new_string(r->text));
	return r->failure;
}

int run_mismatch(struct run *r, const char *where, const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	json_object_object_add(run_new_failure(r), where, json_object_new_string(name));
	return STEP_MISMATCH;
}
