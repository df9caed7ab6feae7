// SPDX-License-Identifier: MIT
/*
 * Checkpoints through file objects of the program: its write() takes bytes, its readinto() gives them.
 * The library calls both from the thread that called it, without the interpreter's lock.
 *
 * The file gets memory of Python's and not the library's: it may keep what it was given.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

/* Bytes of one call: enough that calls cost nothing, and few enough that a signal is soon answered. */
#define STREAM_PIECE ((size_t)4 << 20)

/* The answer of a file object is a count of bytes, or None where it took all. */
static int64_t count_taken(PyObject *answer, size_t bytes)
{
	Py_ssize_t taken;

	if (!answer)
		return -1;
	if (answer == Py_None)
		return (int64_t)bytes;
	taken = PyLong_AsSsize_t(answer);
	if (taken >= 0 && (size_t)taken <= bytes)
		return taken;
	if (!PyErr_Occurred())
		PyErr_Format(PyExc_OSError, "the file moved %zd of %zu bytes", taken, bytes);
	return -1;
}

static int64_t give_bytes(struct stream_call *call, const void *data, size_t bytes)
{
	PyObject *given = PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes), *answer = NULL;
	int64_t taken;

	if (given)
		answer = PyObject_CallMethodObjArgs(call->file, call->method, given, NULL);
	taken = count_taken(answer, bytes);
	Py_XDECREF(given);
	Py_XDECREF(answer);
	return taken;
}

/* The file fills an array of its own, which it may even resize. */
static int64_t take_bytes(struct stream_call *call, void *data, size_t bytes)
{
	PyObject *array = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
	PyObject *answer = NULL;
	int64_t taken = -1;

	if (array)
		answer = PyObject_CallMethodObjArgs(call->file, call->method, array, NULL);
	if (answer == Py_None)
		PyErr_SetString(PyExc_BlockingIOError, "the file has no bytes yet");
	else
		taken = count_taken(answer, bytes);
	if (taken > 0 && taken > PyByteArray_Size(array)) {
		PyErr_SetString(PyExc_OSError, "the file resized the array that it was to fill");
		taken = -1;
	}
	if (taken > 0)
		memcpy(data, PyByteArray_AsString(array), (size_t)taken);
	Py_XDECREF(answer);
	Py_XDECREF(array);
	return taken;
}

/* @to is NULL for a write of what stands at @from. */
static int64_t move_bytes(struct stream_call *call, const void *from, void *to, size_t bytes)
{
	struct progress_call *progress = call->progress;
	int64_t taken = -1;

	bytes = bytes < STREAM_PIECE ? bytes : STREAM_PIECE;
	PyEval_RestoreThread(progress->thread);
	if (!progress->failed && !PyErr_CheckSignals())
		taken = to ? take_bytes(call, to, bytes) : give_bytes(call, from, bytes);
	progress->failed |= taken < 0;
	progress->thread = PyEval_SaveThread();
	return taken < 0 ? -ECANCELED : taken;
}

int64_t stream_write(void *arg, const void *data, size_t bytes)
{
	return move_bytes(arg, data, NULL, bytes);
}

int64_t stream_read(void *arg, void *data, size_t bytes)
{
	return move_bytes(arg, NULL, data, bytes);
}
