// SPDX-License-Identifier: MIT
/*
 * Arguments of methods: those of fast calls by position or by name, names, and whole numbers.
 *
 * Texts belong to their objects, which the caller of the method keeps until it returns.
 */
#include "core.h"

#include <string.h>

static int take_named(const struct arguments *spec, PyObject *name, PyObject *value, PyObject **out)
{
	for (size_t k = 0; k < spec->count; k++) {
		if (PyUnicode_CompareWithASCIIString(name, spec->names[k]))
			continue;
		if (out[k]) {
			PyErr_Format(PyExc_TypeError, "%s() got '%U' twice", spec->function, name);
			return -1;
		}
		out[k] = value;
		return 0;
	}
	PyErr_Format(PyExc_TypeError, "%s() has no argument '%U'", spec->function, name);
	return -1;
}

int arguments_parse(const struct arguments *spec, PyObject *const *args, Py_ssize_t nargs,
		    PyObject *kwnames, PyObject **out)
{
	Py_ssize_t named = kwnames ? PyTuple_Size(kwnames) : 0;

	if ((size_t)nargs > spec->count) {
		PyErr_Format(PyExc_TypeError, "%s() takes at most %zu arguments, got %zd",
			     spec->function, spec->count, nargs);
		return -1;
	}
	for (size_t k = 0; k < spec->count; k++)
		out[k] = k < (size_t)nargs ? args[k] : NULL;
	for (Py_ssize_t k = 0; k < named; k++)
		if (take_named(spec, PyTuple_GetItem(kwnames, k), args[nargs + k], out))
			return -1;
	for (size_t k = 0; k < spec->required; k++)
		if (!out[k]) {
			PyErr_Format(PyExc_TypeError, "%s() lacks the argument '%s'",
				     spec->function, spec->names[k]);
			return -1;
		}
	return 0;
}

/* Without the interpreter's lock another thread may take the member out of the dict at any time. */
PyObject *dict_find(PyObject *dict, PyObject *key)
{
#ifdef Py_GIL_DISABLED
	PyObject *value = NULL;

	PyDict_GetItemRef(dict, key, &value);
	return value;
#else
	return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

const char *text_read(PyObject *object, const char *what)
{
	const char *text = NULL;
	Py_ssize_t length = 0;

	if (PyUnicode_Check(object))
		text = PyUnicode_AsUTF8AndSize(object, &length);
	if (text && strlen(text) == (size_t)length)
		return text;
	PyErr_Clear();
	PyErr_Format(PyUnicode_Check(object) ? PyExc_ValueError : PyExc_TypeError,
		     "%s: %R is no name; give text without null characters and surrogates", what,
		     object);
	return NULL;
}

int whole_read(PyObject *object, const char *what, unsigned long long most, unsigned long long *to)
{
	PyObject *index = PyFloat_Check(object) ? NULL : PyNumber_Index(object);

	if (!index) {
		if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
			PyErr_Format(PyExc_TypeError, "%s: %R is no whole number", what, object);
		return -1;
	}
	*to = PyLong_AsUnsignedLongLong(index);
	Py_DECREF(index);
	if (!PyErr_Occurred() && *to <= most)
		return 0;
	PyErr_Clear();
	PyErr_Format(PyExc_ValueError, "%s is %R; give a whole number from 0 to %llu", what, object,
		     most);
	return -1;
}
