// SPDX-License-Identifier: MIT
/*
 * Structures of the library as dictionaries of Python, both ways, by the descriptions of structures.c.
 *
 * Texts stay those of the dictionary: it must live until the library has copied them, and be one that
 * the program cannot reach, as settings_hold() makes it.
 */
#include "settings.h"

#include <string.h>

/* -- reading --------------------------------------------------------------------- */

/* More than what any structure nests; a dict that holds itself ends here, too. */
#define HOLD_DEPTH 4

static PyObject *hold_deep(PyObject *object, int depth);

static int hold_members(PyObject *dict, int depth)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (PyDict_Next(dict, &at, &key, &value)) {
		PyObject *held;
		int ret;

		if (!PyDict_Check(value) && !PyList_Check(value))
			continue;
		held = hold_deep(value, depth);
		ret = held ? PyDict_SetItem(dict, key, held) : -1;
		Py_XDECREF(held);
		if (ret)
			return -1;
	}
	return 0;
}

static PyObject *hold_deep(PyObject *object, int depth)
{
	PyObject *copy;

	if (PyList_Check(object))
		return PyList_AsTuple(object);
	if (!PyDict_Check(object))
		return Py_NewRef(object);
	if (depth == HOLD_DEPTH) {
		PyErr_SetString(PyExc_ValueError, "settings: dicts are nested too deeply");
		return NULL;
	}
	copy = PyDict_Copy(object);
	if (copy && hold_members(copy, depth + 1))
		Py_CLEAR(copy);
	return copy;
}

PyObject *settings_hold(PyObject *object)
{
	return hold_deep(object, 0);
}

static const struct setting *find_setting(const struct structure *structure, PyObject *key)
{
	for (const struct setting *s = structure->settings; s->name; s++)
		if (PyUnicode_Check(key) && !PyUnicode_CompareWithASCIIString(key, s->name))
			return s;
	PyErr_Format(PyExc_TypeError, "%s: there is no setting %R", structure->name, key);
	return NULL;
}

int settings_fail_type(const struct structure *structure, const char *name, PyObject *value,
		       const char *wanted)
{
	PyErr_Clear();
	PyErr_Format(PyExc_TypeError, "%s: %s is %R; give %s", structure->name, name, value,
		     wanted);
	return -1;
}

/* Likewise behind a method of the program's: what that raised stays, but for a type that is wrong. */
static int raise_reading(const struct structure *structure, const char *name, PyObject *value,
			 const char *wanted)
{
	if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) &&
	    !PyErr_ExceptionMatches(PyExc_OverflowError))
		return -1;
	return settings_fail_type(structure, name, value, wanted);
}

static int read_name(const struct structure *structure, const struct setting *s, PyObject *value,
		     int *to)
{
	PyObject *words;

	for (int k = 0; s->names[k]; k++)
		if (PyUnicode_Check(value) &&
		    !PyUnicode_CompareWithASCIIString(value, s->names[k])) {
			*to = k;
			return 0;
		}
	words = PyUnicode_FromString(s->names[0]);
	for (int k = 1; words && s->names[k]; k++) {
		PyObject *longer = PyUnicode_FromFormat("%U, %s", words, s->names[k]);

		Py_DECREF(words);
		words = longer;
	}
	if (words)
		PyErr_Format(PyExc_ValueError, "%s: %s is %R; the words are %U", structure->name,
			     s->name, value, words);
	Py_XDECREF(words);
	return -1;
}

static int read_text(const struct structure *structure, const struct setting *s, PyObject *value,
		     const char **to)
{
	Py_ssize_t length = 0;
	const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &length) : NULL;

	if (!text || strlen(text) != (size_t)length)
		return settings_fail_type(structure, s->name, value,
					  "text without null characters and surrogates");
	*to = text;
	return 0;
}

/* A whole number within [@least, @most], which may be of a type that stands for one. */
static int read_whole(const struct structure *structure, const struct setting *s, PyObject *value,
		      long long least, unsigned long long most, unsigned long long *to)
{
	PyObject *index = PyFloat_Check(value) ? NULL : PyNumber_Index(value);
	bool negative;

	if (!index)
		return raise_reading(structure, s->name, value, "a whole number");
	*to = (unsigned long long)PyLong_AsLongLong(index);
	negative = (long long)*to < 0;
	if (PyErr_Occurred()) {
		PyErr_Clear();
		*to = PyLong_AsUnsignedLongLong(index);
		negative = false;
	}
	Py_DECREF(index);
	if (!PyErr_Occurred() && (negative ? (long long)*to >= least : *to <= most))
		return 0;
	PyErr_Clear();
	PyErr_Format(PyExc_ValueError, "%s: %s is %R; give a whole number from %lld to %llu",
		     structure->name, s->name, value, least, most);
	return -1;
}

static int read_float(const struct structure *structure, const struct setting *s, PyObject *value,
		      float *to)
{
	double number = PyFloat_AsDouble(value);

	if (number == -1 && PyErr_Occurred())
		return raise_reading(structure, s->name, value, "a number");
	*to = (float)number;
	return 0;
}

/* Numbers whose members are of different widths. */
static int read_number(const struct structure *structure, const struct setting *s, PyObject *value,
		       void *to)
{
	static const unsigned long long most[] = {
		[SETTING_BOOL] = 1,	   [SETTING_SWITCH] = 1,       [SETTING_TRISTATE] = 1,
		[SETTING_I64] = INT64_MAX, [SETTING_U32] = UINT32_MAX, [SETTING_U64] = UINT64_MAX,
		[SETTING_SIZE] = SIZE_MAX,
	};
	unsigned long long number;

	if (read_whole(structure, s, value, s->kind == SETTING_I64 ? INT64_MIN : 0, most[s->kind],
		       &number))
		return -1;
	switch (s->kind) {
	case SETTING_BOOL:
		*(unsigned char *)to = (unsigned char)number;
		break;
	case SETTING_SWITCH:
		*(int *)to = (int)number;
		break;
	case SETTING_TRISTATE:
		*(enum embeng_tristate *)to = number ? EMBENG_ON : EMBENG_OFF;
		break;
	case SETTING_U32:
		*(uint32_t *)to = (uint32_t)number;
		break;
	default:
		*(uint64_t *)to = number;
	}
	return 0;
}

static int read_setting(const struct structure *structure, const struct setting *s, PyObject *value,
			void *to)
{
	if (value == Py_None)
		return 0;
	switch (s->kind) {
	case SETTING_SKIP:
	case SETTING_CHARS:
		return 0;
	case SETTING_TEXT:
		return read_text(structure, s, value, to);
	case SETTING_NAME:
		return read_name(structure, s, value, to);
	case SETTING_F32:
		return read_float(structure, s, value, to);
	default:
		return read_number(structure, s, value, to);
	}
}

int settings_read(const struct structure *structure, PyObject *dict, void *to)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;

	if (!PyDict_Check(dict))
		return settings_fail_type(structure, "the whole", dict, "a dict");
	while (PyDict_Next(dict, &at, &key, &value)) {
		const struct setting *s = find_setting(structure, key);

		if (!s || read_setting(structure, s, value, (char *)to + s->offset))
			return -1;
	}
	return 0;
}

/* -- describing ------------------------------------------------------------------ */

int settings_set(PyObject *dict, const char *key, PyObject *value)
{
	int ret = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return ret;
}

static PyObject *describe_tristate(enum embeng_tristate value)
{
	return value == EMBENG_DEFAULT ? Py_NewRef(Py_None) : PyBool_FromLong(value == EMBENG_ON);
}

PyObject *settings_describe_text(const char *text)
{
	return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
		    : Py_NewRef(Py_None);
}

static PyObject *describe_setting(const struct setting *s, const void *from)
{
	switch (s->kind) {
	case SETTING_F32:
		return PyFloat_FromDouble(*(const float *)from);
	case SETTING_BOOL:
		return PyBool_FromLong(*(const unsigned char *)from);
	case SETTING_SWITCH:
		return PyBool_FromLong(*(const int *)from);
	case SETTING_TRISTATE:
		return describe_tristate(*(const enum embeng_tristate *)from);
	case SETTING_I64:
		return PyLong_FromLongLong(*(const int64_t *)from);
	case SETTING_U32:
		return PyLong_FromUnsignedLong(*(const uint32_t *)from);
	case SETTING_U64:
	case SETTING_SIZE:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)from);
	case SETTING_TEXT:
		return settings_describe_text(*(const char *const *)from);
	case SETTING_CHARS:
		return settings_describe_text(from);
	default:
		return PyUnicode_FromString(s->names[*(const int *)from]);
	}
}

PyObject *settings_describe(const struct structure *structure, const void *from)
{
	PyObject *dict = PyDict_New();

	for (const struct setting *s = structure->settings; dict && s->name; s++)
		if (s->kind != SETTING_SKIP &&
		    settings_set(dict, s->name,
				 describe_setting(s, (const char *)from + s->offset)))
			Py_CLEAR(dict);
	return dict;
}

/* -- initializers ------------------------------------------------------------------ */

int settings_read_initializer(PyObject *object, struct embeng_initializer *initializer)
{
	return settings_read(&structure_initializer, object, initializer);
}

PyObject *settings_describe_initializer(const struct embeng_initializer *initializer)
{
	return settings_describe(&structure_initializer, initializer);
}
