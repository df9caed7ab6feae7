// SPDX-License-Identifier: MIT
/*
 * Exceptions for errors of the library. Each errno has a class, which embeng/_errors.py lists; the
 * sentence is the library's, and the attributes code and status are its numbers.
 *
 * The library keeps the last error of each thread, so it must be asked by the thread that failed.
 */
#include "core.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static int set_number(PyObject *exception, const char *name, long number)
{
	PyObject *value = PyLong_FromLong(number);
	int ret = value ? PyObject_SetAttrString(exception, name, value) : -1;

	Py_XDECREF(value);
	return ret;
}

static PyObject *raise_error(PyObject *type, int code, unsigned int status, PyObject *text)
{
	PyObject *exception;

	if (!text)
		return NULL;
	exception = PyObject_CallFunctionObjArgs(type, text, NULL);
	if (exception && !set_number(exception, "code", code) &&
	    !set_number(exception, "status", (long)status))
		PyErr_SetObject(type, exception);
	Py_XDECREF(exception);
	return NULL;
}

/* The class of a code. Borrowed. */
static PyObject *find_error(struct core_state *state, int code)
{
	PyObject *key = PyLong_FromLong(-(long)code), *type = NULL;

	if (key)
		type = PyDict_GetItemWithError(state->errors, key);
	Py_XDECREF(key);
	PyErr_Clear();
	return type ? type : state->error;
}

static PyObject *raise_given(struct core_state *state, PyObject *type,
			     const struct embeng_error *error)
{
	PyObject *text = PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text),
					      "replace");

	raise_error(type ? type : find_error(state, error->code), error->code, error->status, text);
	Py_XDECREF(text);
	return NULL;
}

/* An error of this thread that its next failure raises in place of the last one; code 0: there is none. */
static _Thread_local struct embeng_error kept;

void core_keep_error(const struct embeng_error *error)
{
	kept = error ? *error : (struct embeng_error){0};
}

static PyObject *raise_last(struct core_state *state, PyObject *type)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	if (kept.code)
		error = kept;
	core_keep_error(NULL);
	return raise_given(state, type, &error);
}

PyObject *core_fail_of(struct core_state *state, const struct embeng_error *error)
{
	return raise_given(state, NULL, error);
}

PyObject *core_fail(struct core_state *state)
{
	return raise_last(state, NULL);
}

PyObject *core_fail_group(struct core_state *state)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	return raise_given(state, error.code == -EBADMSG ? find_error(state, -EIO) : NULL, &error);
}

PyObject *core_fail_making(struct core_state *state, int code)
{
	return raise_last(state, code == -ENOSPC ? find_error(state, -ENOMEM) : NULL);
}

PyObject *core_fail_opening(struct core_state *state, int code)
{
	return raise_last(state, code == -ENOENT ? state->not_found : NULL);
}

PyObject *core_fail_with(struct core_state *state, int code, const char *format, ...)
{
	PyObject *text;
	va_list args;

	va_start(args, format);
	text = PyUnicode_FromFormatV(format, args);
	va_end(args);
	raise_error(find_error(state, code), code, 0, text);
	Py_XDECREF(text);
	return NULL;
}
