// SPDX-License-Identifier: MIT
/*
 * Calls of the library that may wait, made so that other Python threads run meanwhile and that a
 * signal is answered: a wait is cut into pieces of 100 ms, and between two of them, and whenever long
 * work tells how far it is, the handlers of signals run.
 *
 * The interpreter's lock is held at the call and at the return, and not while the library works.
 */
#include "core.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#define SLICE_NS 100000000ll
#define SECOND_NS 1000000000ll

static int64_t read_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Nanoseconds of a timeout in seconds; -1 for none. Return: 0, or -1 with an exception. */
static int read_timeout(PyObject *timeout, int64_t *ns)
{
	double seconds;

	*ns = -1;
	if (!timeout || timeout == Py_None)
		return 0;
	seconds = PyFloat_AsDouble(timeout);
	if (seconds == -1 && PyErr_Occurred())
		return -1;
	if (isnan(seconds) || seconds < 0) {
		PyErr_SetString(PyExc_ValueError,
				"timeout: give seconds, from 0, or None for no limit");
		return -1;
	}
	*ns = seconds < 9e9 ? (int64_t)(seconds * 1e9) : INT64_MAX;
	return 0;
}

int core_wait(int (*call)(void *arg, int64_t timeout_ns), void *arg, PyObject *timeout)
{
	int64_t limit, end = INT64_MAX, slice;
	int ret;

	if (read_timeout(timeout, &limit))
		return 1;
	if (limit >= 0 && __builtin_add_overflow(read_clock(), limit, &end))
		end = INT64_MAX;
	slice = limit >= 0 && limit < SLICE_NS ? limit : SLICE_NS;
	for (;;) {
		Py_BEGIN_ALLOW_THREADS ret = call(arg, slice);
		Py_END_ALLOW_THREADS if (ret != -ETIME || !limit) return ret;
		if (PyErr_CheckSignals())
			return 1;
		slice = end - read_clock();
		if (slice <= 0)
			return ret;
		slice = slice < SLICE_NS ? slice : SLICE_NS;
	}
}

static int tell_progress(const struct progress_call *call, const struct embeng_progress *progress)
{
	PyObject *answer;

	if (!call->function)
		return 0;
	answer = PyObject_CallFunction(call->function, "sKK", progress->what,
				       (unsigned long long)progress->done,
				       (unsigned long long)progress->total);
	Py_XDECREF(answer);
	return answer ? 0 : -1;
}

int core_progress(void *arg, const struct embeng_progress *progress)
{
	struct progress_call *call = arg;

	PyEval_RestoreThread(call->thread);
	if (!call->failed)
		call->failed = PyErr_CheckSignals() || tell_progress(call, progress);
	call->thread = PyEval_SaveThread();
	return call->failed;
}
