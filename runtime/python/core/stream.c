// SPDX-License-Identifier: MIT
/*
 * Checkpoints through file objects of the program: its write() takes bytes, its readinto() gives them.
 * The library calls both from the thread that called it, without the interpreter's lock.
 */
#include "core.h"

#include <errno.h>

/* Bytes of one call: enough that calls cost nothing, and few enough that a signal is soon answered. */
#define STREAM_PIECE ((size_t)4 << 20)

/* What a file object said: a count of bytes, or None from one that took all. */
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

static int64_t call_file(struct stream_call *call, const char *method, char *data, size_t bytes,
			 int flags)
{
	PyObject *view = PyMemoryView_FromMemory(data, (Py_ssize_t)bytes, flags);
	PyObject *answer = NULL, *released = NULL;
	int64_t taken = -1;

	if (view)
		answer = PyObject_CallMethod(call->file, method, "O", view);
	taken = count_taken(answer, bytes);
	Py_XDECREF(answer);
	/* A file that keeps the view must not reach memory that is gone. */
	if (view && taken >= 0) {
		released = PyObject_CallMethod(view, "release", NULL);
		if (!released)
			taken = -1;
	}
	Py_XDECREF(released);
	Py_XDECREF(view);
	return taken;
}

static int64_t move_bytes(struct stream_call *call, const char *method, char *data, size_t bytes,
			  int flags)
{
	struct progress_call *progress = call->progress;
	int64_t taken = -1;

	bytes = bytes < STREAM_PIECE ? bytes : STREAM_PIECE;
	PyEval_RestoreThread(progress->thread);
	if (!progress->failed && !PyErr_CheckSignals())
		taken = call_file(call, method, data, bytes, flags);
	progress->failed |= taken < 0;
	progress->thread = PyEval_SaveThread();
	return taken < 0 ? -ECANCELED : taken;
}

int64_t stream_write(void *arg, const void *data, size_t bytes)
{
	return move_bytes(arg, "write", (char *)data, bytes, PyBUF_READ);
}

int64_t stream_read(void *arg, void *data, size_t bytes)
{
	return move_bytes(arg, "readinto", data, bytes, PyBUF_WRITE);
}
