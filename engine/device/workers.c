// SPDX-License-Identifier: MIT
/*
 * The cores of the device: helper threads that share the tasks of one job with the thread that
 * calls workers_run(). There is one job at a time. Helpers count themselves in before they look
 * whether the job is open; the caller closes it and waits until all have counted themselves out. So
 * nobody ever works on a job that is over.
 *
 * The threads live as long as the engine. engine->lock is not held: all shared words are atomic,
 * and what a task may touch is up to its job.
 */
#include "device.h"

#define SPIN_NS 10000u
#define SHARES 16u /* a core takes 1/16 of its equal part of the tasks left */

struct worker {
	struct workers *workers;
	struct port_thread *thread;
	u32 number;
};

struct workers {
	struct engine *engine;
	void (*piece_done)(struct engine *engine, struct command *command);
	u32 cores;
	u32 taken; /* a caller has the helpers */
	bool stopping;
	struct port_event *work; /* there is a job */
	struct port_event *left; /* the last helper counted itself out */
	u32 open, inside, waiting;
	struct command *command;
	void (*fn)(void *arg, u64 task, u32 worker);
	void *arg;
	u64 tasks, next;
	bool runs;
	struct worker helpers[]; /* [cores - 1] */
};

#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

static void end_piece(struct engine *engine, struct command *command)
{
	if (engine->workers)
		engine->workers->piece_done(engine, command);
	port_yield();
}

void piece_beat(struct engine *engine)
{
	end_piece(engine, NULL);
}

/* An update that is at work goes on when its queue is to end: half a step is none. */
bool command_stops(const struct command *command)
{
	return __atomic_load_n(&command->context->dying, __ATOMIC_RELAXED) ||
	       (!command->finishes && __atomic_load_n(&command->queue->dying, __ATOMIC_RELAXED));
}

bool piece_over(struct command *command)
{
	if (!command)
		return false;
	end_piece(command->context->engine, command);
	if (!command_stops(command))
		return false;
	__atomic_store_n(&command->cut, true, __ATOMIC_RELAXED);
	return true;
}

bool piece_copy(struct command *command, void *to, const void *from, u64 bytes)
{
	for (u64 at = 0, n; at < bytes; at += n) {
		n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
		memcpy((u8 *)to + at, (const u8 *)from + at, n);
		if (piece_over(command))
			return true;
	}
	return false;
}

/* Runs become shorter and shorter, so that all cores end together. */
static u64 take_tasks(struct workers *w, u64 *first)
{
	u64 next = LOAD(&w->next), n;

	do {
		if (next >= w->tasks)
			return 0;
		n = w->runs ? (w->tasks - next) / (SHARES * w->cores) : 1;
		n = n ? n : 1;
	} while (!__atomic_compare_exchange_n(&w->next, &next, next + n, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
	*first = next;
	return n;
}

static void do_tasks(struct workers *w, u32 worker)
{
	u64 first, n;

	while ((n = take_tasks(w, &first))) {
		for (u64 i = 0; i < n; i++) {
			w->fn(w->arg, first + i, worker);
			if (piece_over(w->command))
				return;
		}
	}
}

static void help_with_tasks(struct workers *w, u32 worker)
{
	u64 began = port_now_ns();

	ADD(&w->inside, 1);
	if (LOAD(&w->open)) {
		do_tasks(w, worker);
		busy_core(w->engine, worker, port_now_ns() - began);
	}
	if (ADD(&w->inside, -1u) == 1 && LOAD(&w->waiting))
		port_event_signal(w->left);
}

static bool await_work(struct workers *w, u32 seen)
{
	u64 until = port_now_ns() + SPIN_NS;

	while (port_event_read(w->work) == seen) {
		if (LOAD(&w->stopping))
			return false;
		if (port_now_ns() < until)
			port_relax();
		else
			port_event_wait(w->work, seen, U64_MAX);
	}
	return !LOAD(&w->stopping);
}

static void serve_tasks(void *arg)
{
	struct worker *me = arg;
	u32 seen = 0, now;

	while (await_work(me->workers, seen)) {
		now = port_event_read(me->workers->work);
		help_with_tasks(me->workers, me->number);
		seen = now;
	}
}

static bool start_helpers(struct workers *w)
{
	u32 i;

	w->work = port_event_new();
	w->left = port_event_new();
	if (!w->work || !w->left)
		return false;
	for (i = 0; i + 1 < w->cores; i++) {
		w->helpers[i].workers = w;
		w->helpers[i].number = i + 1;
		w->helpers[i].thread = port_thread_start(serve_tasks, &w->helpers[i], "embeng-core",
							 w->engine->config.roam ? -1 : (int)i + 1);
		if (!w->helpers[i].thread)
			return false;
	}
	return true;
}

struct workers *workers_new(struct engine *engine, u32 cores,
			    void (*piece_done)(struct engine *engine, struct command *command))
{
	struct workers *w = port_alloc(sizeof(*w) + (cores - 1) * sizeof(w->helpers[0]));

	if (!w)
		return NULL;
	w->engine = engine;
	w->piece_done = piece_done;
	w->cores = cores;
	if (!start_helpers(w)) {
		workers_free(w);
		return NULL;
	}
	return w;
}

void workers_free(struct workers *workers)
{
	u32 i;

	if (!workers)
		return;
	STORE(&workers->stopping, true);
	if (workers->work)
		port_event_signal(workers->work);
	for (i = 0; i + 1 < workers->cores && workers->helpers[i].thread; i++)
		port_thread_join(workers->helpers[i].thread);
	if (workers->work)
		port_event_free(workers->work);
	if (workers->left)
		port_event_free(workers->left);
	port_free(workers);
}

static void await_helpers(struct workers *w)
{
	u64 until = port_now_ns() + SPIN_NS;
	u32 seen;

	while (LOAD(&w->inside) && port_now_ns() < until)
		port_relax();
	STORE(&w->waiting, 1);
	for (;;) {
		seen = port_event_read(w->left);
		if (!LOAD(&w->inside))
			break;
		port_event_wait(w->left, seen, U64_MAX);
	}
	STORE(&w->waiting, 0);
}

static void run_together(struct workers *w)
{
	STORE(&w->next, 0);
	STORE(&w->open, 1);
	port_event_signal(w->work);
	do_tasks(w, 0);
	STORE(&w->open, 0);
	await_helpers(w);
}

static bool is_shared(const struct workers *w, u64 tasks, u64 bytes)
{
	return w->cores > 1 && tasks > 1 && bytes >= w->engine->inline_bytes;
}

/* Two commands may be accepted at once: the second does its tasks alone. */
static bool run_tasks(struct command *command, void (*fn)(void *arg, u64 task, u32 worker),
		      void *arg, u64 tasks, u64 bytes, bool runs)
{
	struct workers *w = command->context->engine->workers;

	if (is_shared(w, tasks, bytes) && !__atomic_exchange_n(&w->taken, 1, __ATOMIC_SEQ_CST)) {
		w->command = command;
		w->fn = fn;
		w->arg = arg;
		w->tasks = tasks;
		w->runs = runs;
		run_together(w);
		STORE(&w->taken, 0);
		return !command_is_cut(command);
	}
	for (u64 task = 0; task < tasks; task++) {
		fn(arg, task, 0);
		if (piece_over(command))
			return false;
	}
	return true;
}

bool workers_run(struct command *command, void (*fn)(void *arg, u64 task, u32 worker), void *arg,
		 u64 tasks, u64 bytes)
{
	return run_tasks(command, fn, arg, tasks, bytes, false);
}

bool workers_run_rows(struct command *command, void (*fn)(void *arg, u64 task, u32 worker),
		      void *arg, u64 tasks, u64 bytes)
{
	return run_tasks(command, fn, arg, tasks, bytes, true);
}
