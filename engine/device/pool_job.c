// SPDX-License-Identifier: MIT
/*
 * Jobs of a pool: a thread that has tasks to share opens one, works on it itself, and closes it. So
 * a job never depends on helpers, and there is no order in which jobs could wait for each other.
 * Helpers count themselves in before they look whether a job is open; the caller closes it and waits
 * until all have counted themselves out. So nobody ever works on a job that is over.
 *
 * A helper is a worker of the job with a number of its own, its seat. Where several jobs are open,
 * helpers go from one to the next (pool_calls()).
 *
 * The jobs are memory of the pool, so that a helper can look at them at any time. All shared words
 * are atomic; there is no lock.
 */
#include "pool.h"

#define SPIN_NS 10000u

static u32 bit_of_job(const struct pool *pool, const struct pool_job *job)
{
	return 1u << (job - pool->jobs);
}

static struct pool_job *take_job(struct pool *pool)
{
	u32 taken = POOL_LOAD(&pool->taken), free;

	do {
		free = ~taken & ((1u << POOL_JOBS) - 1);
		if (!free)
			return NULL;
	} while (!__atomic_compare_exchange_n(&pool->taken, &taken, taken | (free & -free), false,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return &pool->jobs[__builtin_ctz(free)];
}

struct pool_job *pool_share(struct pool *pool, u32 cores,
			    void (*help)(struct pool_job *job, u32 worker), void *arg)
{
	struct pool_job *job = take_job(pool);

	if (!job)
		return NULL;
	job->help = help;
	job->arg = arg;
	POOL_STORE(&job->seats, ~0ull >> (64 - cores) & ~1ull);
	__atomic_fetch_or(&pool->open, bit_of_job(pool, job), __ATOMIC_SEQ_CST);
	port_event_signal_some(pool->work, cores - 1);
	return job;
}

void pool_drain(struct pool *pool, const struct pool_job *job)
{
	if (POOL_LOAD(&pool->open) & bit_of_job(pool, job))
		__atomic_fetch_and(&pool->open, ~bit_of_job(pool, job), __ATOMIC_SEQ_CST);
}

static void await_helpers(struct pool_job *job)
{
	u64 until;
	u32 seen;

	if (!POOL_LOAD(&job->inside))
		return;
	until = port_now_ns() + SPIN_NS;
	while (POOL_LOAD(&job->inside) && port_now_ns() < until)
		port_relax();
	POOL_STORE(&job->waiting, 1);
	for (;;) {
		seen = port_event_read(job->left);
		if (!POOL_LOAD(&job->inside))
			break;
		port_event_wait(job->left, seen, U64_MAX);
	}
	POOL_STORE(&job->waiting, 0);
}

void pool_unshare(struct pool *pool, struct pool_job *job)
{
	pool_drain(pool, job);
	await_helpers(job);
	__atomic_fetch_and(&pool->taken, ~bit_of_job(pool, job), __ATOMIC_SEQ_CST);
}

bool pool_calls(const struct pool *pool, const struct pool_job *job)
{
	return (POOL_LOAD(&pool->open) & ~bit_of_job(pool, job)) ||
	       (POOL_LOAD(&pool->serving) && pool_is_wanted(pool));
}

/* The worker @number if it is free, since its memory may be near; else any. 0: none is free. */
static u32 take_seat(struct pool_job *job, u32 number)
{
	u64 seats = POOL_LOAD(&job->seats), seat;

	do {
		if (!seats)
			return 0;
		seat = 1ull << number;
		if (!(seats & seat))
			seat = seats & -seats;
	} while (!__atomic_compare_exchange_n(&job->seats, &seats, seats & ~seat, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return (u32)__builtin_ctzll(seat);
}

static bool sit_down(struct pool *pool, struct pool_job *job, u32 number)
{
	u32 worker = 0;

	POOL_ADD(&job->inside, 1);
	if (POOL_LOAD(&pool->open) & bit_of_job(pool, job))
		worker = take_seat(job, number);
	if (worker) {
		job->help(job, worker);
		__atomic_fetch_or(&job->seats, 1ull << worker, __ATOMIC_SEQ_CST);
	}
	if (POOL_ADD(&job->inside, -1u) == 1 && POOL_LOAD(&job->waiting))
		port_event_signal(job->left);
	return worker;
}

/* They are asked in turn, beginning behind the one that it helped with last. */
bool pool_help(struct pool *pool, struct pool_thread *me)
{
	u32 i, at;

	if (!POOL_LOAD(&pool->open))
		return false;
	for (i = 1; i <= POOL_JOBS; i++) {
		at = (me->last + i) % POOL_JOBS;
		if (!(POOL_LOAD(&pool->open) & 1u << at) ||
		    !sit_down(pool, &pool->jobs[at], me->number))
			continue;
		me->last = at;
		return true;
	}
	return false;
}
