// SPDX-License-Identifier: MIT
/*
 * Calls of the library that may wait, made so that other Python threads run meanwhile and that a
 * signal is answered: a wait is cut into pieces of 100 ms, a long move of rows into pieces of 16 MiB.
 * The handlers of signals run between two of them, whenever long work tells how far it is, and when a
 * call that computes asks.
 *
 * The interpreter's lock is held at the call and at the return, and not while the library works.
 */
#include "core.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#define SLICE_NS 100000000ll
#define SECOND_NS 1000000000ll

static int64_t read_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND_NS + now.tv_nsec;
}

int deadline_read(PyObject *timeout, struct deadline *deadline)
{
	double seconds;

	*deadline = (struct deadline){.limit = -1, .end = INT64_MAX};
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
	deadline->limit = seconds < 9e9 ? (int64_t)(seconds * 1e9) : INT64_MAX;
	if (__builtin_add_overflow(read_clock(), deadline->limit, &deadline->end))
		deadline->end = INT64_MAX;
	return 0;
}

/* A timeout of 0 stays 0, which has a meaning of its own; one that is over waits no more. */
static int64_t choose_slice(const struct deadline *deadline)
{
	int64_t left = SLICE_NS;

	if (deadline->limit >= 0 && deadline->end != INT64_MAX)
		left = deadline->end - read_clock();
	if (left < 0 || !deadline->limit)
		left = 0;
	return left < SLICE_NS ? left : SLICE_NS;
}

/* A call of the library, made again and again while it waits. */
struct slices {
	int (*call)(void *arg, int64_t timeout_ns);
	void *arg;
	struct engine_object
		*engine; /* NULL: it is not asked for signals in the middle of its work */
	PyThreadState *thread;
	bool failed; /* an exception is set */
};

/* The library has begun something with the engine: a handler that used it might wait for ever. */
static int ask_signals(void *arg)
{
	struct slices *slices = arg;
	struct open_work work;

	PyEval_RestoreThread(slices->thread);
	open_work_begin(&work, slices->engine->open);
	slices->failed = PyErr_CheckSignals() != 0;
	open_work_end(&work);
	slices->thread = PyEval_SaveThread();
	return slices->failed;
}

static int run_slice(struct slices *slices, int64_t timeout_ns)
{
	int ret;

	slices->thread = PyEval_SaveThread();
	if (slices->engine)
		embeng_ask(ask_signals, slices);
	ret = slices->call(slices->arg, timeout_ns);
	if (slices->engine)
		embeng_ask(NULL, NULL);
	PyEval_RestoreThread(slices->thread);
	return slices->failed ? 1 : ret;
}

/*
 * A slice is over, or that was the end of a group of hosts, which it tells once: then the call that was made
 * again has the group's sentence within its own.
 */
static void keep_group_error(const struct embeng_error *before)
{
	struct embeng_error now = EMBENG_INIT(embeng_error);

	embeng_last_error(&now);
	if (before->code == -ETIME && now.code == -ESHUTDOWN && strstr(now.text, before->text))
		core_keep_error(before);
}

static int run_slices(struct slices *slices, const struct deadline *deadline)
{
	struct embeng_error before = EMBENG_INIT(embeng_error);

	core_keep_error(NULL);
	for (;;) {
		int64_t slice = choose_slice(deadline);
		int ret = run_slice(slices, slice);

		if (ret == -ESHUTDOWN)
			keep_group_error(&before);
		if (ret != -ETIME || !slice)
			return ret;
		embeng_last_error(&before);
		if (PyErr_CheckSignals())
			return 1;
	}
}

int core_wait_until(int (*call)(void *arg, int64_t timeout_ns), void *arg,
		    const struct deadline *deadline)
{
	return run_slices(&(struct slices){.call = call, .arg = arg}, deadline);
}

int core_wait(int (*call)(void *arg, int64_t timeout_ns), void *arg, PyObject *timeout)
{
	struct deadline deadline;

	return deadline_read(timeout, &deadline) ? 1 : core_wait_until(call, arg, &deadline);
}

int core_compute(struct engine_object *engine, int (*call)(void *arg, int64_t timeout_ns),
		 void *arg, PyObject *timeout)
{
	struct slices slices = {.call = call, .arg = arg, .engine = engine};
	struct deadline deadline;

	return deadline_read(timeout, &deadline) ? 1 : run_slices(&slices, &deadline);
}

/* -- rows in pieces -------------------------------------------------------------------- */

#define PIECE_FLOATS (4 << 20)

int64_t row_piece_most(int64_t width)
{
	return width < PIECE_FLOATS ? PIECE_FLOATS / width : 1;
}

int row_pieces_run(struct core_state *state, int (*call)(void *arg, int64_t timeout_ns), void *arg,
		   struct row_piece *piece, int64_t count, int64_t most)
{
	for (piece->at = 0; piece->at < count; piece->at += piece->length) {
		int ret;

		piece->length = count - piece->at < most ? count - piece->at : most;
		ret = core_wait(call, arg, NULL);
		if (ret < 0)
			core_fail(state);
		if (ret || PyErr_CheckSignals())
			return -1;
	}
	return 0;
}

/* -- progress --------------------------------------------------------------------------- */

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
