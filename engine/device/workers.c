// SPDX-License-Identifier: MIT
/*
 * The cores of the device: one job at a time, whose tasks are shared by the thread that calls
 * workers_run() and by helpers of the pool (pool.h), each of them a worker with a number of its own.
 *
 * struct workers lives as long as the engine. engine->lock is not held: all shared words are atomic,
 * and what a task may touch is up to its job.
 */
#include "pool.h"

#define SHARES 16u /* a core takes 1/16 of its equal part of the tasks left */
/* So long a helper stays with a job while it is wanted elsewhere, too. */
#define STAY_NS 1000000u

struct workers {
	struct engine *engine;
	struct pool *own; /* NULL: the pool is the host's */
	void (*piece_done)(struct engine *engine, struct command *command);
	u32 cores;
	u32 taken; /* a caller has the helpers */
	struct command *command;
	void (*fn)(void *arg, u64 task, u32 worker);
	void *arg;
	u64 tasks, next;
	bool runs;
};

#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

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

/* Tasks that were taken are done, whatever else is wanted. Return: false: the job is over. */
static bool do_tasks(struct workers *w, u32 worker)
{
	u64 first, n;

	n = take_tasks(w, &first);
	for (u64 i = 0; i < n; i++) {
		w->fn(w->arg, first + i, worker);
		if (piece_over(w->command))
			return false;
	}
	return n;
}

static void help_with_tasks(struct pool_job *job, u32 worker)
{
	struct workers *w = job->arg;
	struct pool *pool = w->engine->pool;
	u64 began = port_now_ns();

	for (;;) {
		if (!do_tasks(w, worker)) {
			pool_drain(pool, job);
			break;
		}
		if (pool_calls(pool, job) && port_now_ns() - began >= STAY_NS)
			break;
	}
	busy_core(w->engine, worker, port_now_ns() - began);
}

struct workers *workers_new(struct engine *engine, u32 cores,
			    void (*piece_done)(struct engine *engine, struct command *command))
{
	struct workers *w = port_alloc(sizeof(*w));

	if (!w)
		return NULL;
	w->engine = engine;
	w->piece_done = piece_done;
	w->cores = cores;
	if (!engine->pool)
		engine->pool = w->own = pool_new();
	if (!engine->pool || !pool_grow(engine->pool, cores - 1, engine->config.roam)) {
		workers_free(w);
		return NULL;
	}
	return w;
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	if (workers->own) {
		pool_free(workers->own);
		workers->engine->pool = NULL;
	}
	port_free(workers);
}

static bool is_shared(const struct workers *w, u64 tasks, u64 bytes)
{
	return w->cores > 1 && tasks > 1 && bytes >= w->engine->inline_bytes;
}

static bool run_alone(struct command *command, void (*fn)(void *arg, u64 task, u32 worker),
		      void *arg, u64 tasks)
{
	for (u64 task = 0; task < tasks; task++) {
		fn(arg, task, 0);
		if (piece_over(command))
			return false;
	}
	return true;
}

/* The job is the caller's, who works on it whether helpers come or not. */
static void run_together(struct workers *w)
{
	struct pool *pool = w->engine->pool;
	struct pool_job *job;

	STORE(&w->next, 0);
	job = pool_share(pool, w->cores, help_with_tasks, w);
	while (do_tasks(w, 0))
		;
	if (job)
		pool_unshare(pool, job);
}

/* Two commands may be accepted at once: the second does its tasks alone. */
static bool run_tasks(struct command *command, void (*fn)(void *arg, u64 task, u32 worker),
		      void *arg, u64 tasks, u64 bytes, bool runs)
{
	struct workers *w = command->context->engine->workers;

	if (!is_shared(w, tasks, bytes) || __atomic_exchange_n(&w->taken, 1, __ATOMIC_SEQ_CST))
		return run_alone(command, fn, arg, tasks);
	w->command = command;
	w->fn = fn;
	w->arg = arg;
	w->tasks = tasks;
	w->runs = runs;
	run_together(w);
	STORE(&w->taken, 0);
	return !command_is_cut(command);
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
