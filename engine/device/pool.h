/* SPDX-License-Identifier: MIT */
/*
 * Inside a pool of threads, which the devices of one host share: one thread that serves devices,
 * and helpers. pool.c has the threads and the devices that want one; pool_job.c has the jobs that
 * helpers share with the thread that brought them. The functions may be called by any thread, and
 * none of them needs engine->lock.
 */
#ifndef EMBENG_ENGINE_POOL_H
#define EMBENG_ENGINE_POOL_H

#include "device.h"

#define POOL_JOBS 16u /* that helpers know of at a time; callers do further ones alone */
#define POOL_THREADS EMBENG_CORES_MAX

struct pool_job {
	u32 inside;		 /* helpers that look at it or work on it */
	u32 waiting;		 /* its caller waits until they have gone */
	u64 seats;		 /* numbers of workers that are free, a bit each */
	struct port_event *left; /* the last helper has gone */
	void (*help)(struct pool_job *job, u32 worker);
	void *arg;
};

struct pool_thread {
	struct pool *pool;
	struct port_thread *thread;
	u32 number; /* 0: it serves devices; others: the worker that it prefers to be */
	u32 last;   /* the job that it helped with last */
};

struct pool {
	struct port_mutex *lock; /* guards what follows but the atomic words */
	struct port_event *bell; /* for the service thread */
	struct port_event *work; /* for helpers: a job, or a device that wants a thread */
	u32 stopping;		 /* atomic */
	u32 helpers;
	struct pool_thread threads[POOL_THREADS];
	struct engine *members;		/* devices that it serves */
	struct engine *oldest, *newest; /* those that want a thread now, in turn */
	u32 wanted, fresh;	      /* atomic: how many do, and which of them nobody looked at */
	u32 serving;		      /* atomic: the service thread is at work */
	const struct engine *current; /* the device that it serves then */
	u64 wake_ns;		      /* when the first member is due, U64_MAX: none is */
	u32 open, taken;	      /* atomic: jobs, a bit each */
	struct pool_job jobs[POOL_JOBS];
};

#define POOL_LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define POOL_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define POOL_ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)

/* Starts helpers up to @helpers in all. @roam: see engine_config. Return: false: no thread. */
bool pool_grow(struct pool *pool, u32 helpers, bool roam);

/*
 * From here on the device has a thread whenever it wants one: @serve is called by a thread of the
 * pool, and with @briefly by one that works for another device meanwhile. @wake_ns: out, when it is
 * to be called again at the latest. Return: 0, or -ENOMEM: no thread.
 */
int pool_enter(struct engine *e,
	       enum served (*serve)(struct engine *e, bool briefly, u64 *wake_ns));
/* Returns when no thread serves it any more. */
void pool_leave(struct engine *e);
/* A thread is to serve it. */
void pool_want(struct engine *e);
/* Devices wait for a thread. */
static inline bool pool_is_wanted(const struct pool *pool)
{
	return POOL_LOAD(&pool->wanted);
}
/*
 * A thread that works for @e serves other devices that wait, for about @most_ns. Return: how long it
 * did.
 */
u64 pool_lend(struct engine *e, u64 most_ns);

/* pool_job.c */
/* NULL: there is no room; the caller does its job alone. @cores: its workers, the caller too. */
struct pool_job *pool_share(struct pool *pool, u32 cores,
			    void (*help)(struct pool_job *job, u32 worker), void *arg);
/* No task is left to be taken: no further helper comes. */
void pool_drain(struct pool *pool, const struct pool_job *job);
/* Returns when no helper works on it any more. */
void pool_unshare(struct pool *pool, struct pool_job *job);
/* A helper is wanted elsewhere, too. */
bool pool_calls(const struct pool *pool, const struct pool_job *job);
/* Helps with a job that is open. Return: false: there was none. */
bool pool_help(struct pool *pool, struct pool_thread *me);

#endif
