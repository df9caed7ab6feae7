// SPDX-License-Identifier: MIT
/*
 * How a thread of the pool serves a device: while there is work, and a little longer where other
 * threads can give it some meanwhile. Then the device sleeps: nobody looks at it until engine_kick()
 * or the time of its next heartbeat or delayed NOP.
 *
 * A device is served from service_start() to service_stop(). engine->lock is taken for each look at
 * the device and to find out how long it may sleep; engine->sleeping and engine->stopping are
 * atomic.
 */
#include "device/pool.h"

#define SPIN_NS 20000u

static bool is_stopping(struct engine *e)
{
	return __atomic_load_n(&e->stopping, __ATOMIC_ACQUIRE);
}

/*
 * Heartbeats of all devices come at multiples of an eighth of the time between two, so that one waking
 * of the thread is enough for many devices.
 */
static u64 next_beat_ns(const struct engine *e)
{
	u64 eighth = (u64)e->heartbeat_ms * 125000, beat = port_now_ns() + 8 * eighth;

	return (beat / eighth + 1) * eighth;
}

/* The time of the next delayed NOP or heartbeat. */
static u64 next_wake_ns(struct engine *e)
{
	u64 wake, beat = U64_MAX;

	port_lock(e->lock);
	wake = e->wake_ns;
	if (e->heartbeat_ms && e->queues[0])
		beat = next_beat_ns(e);
	port_unlock(e->lock);
	return wake < beat ? wake : beat;
}

static void set_sleeping(struct engine *e)
{
	__atomic_store_n(&e->sleeping, true, __ATOMIC_SEQ_CST);
	EMBENG_FULL_BARRIER();
}

/*
 * The last look comes after @sleeping is up, and engine_kick() looks at @sleeping after what
 * it was called for: one of the two sees the other. Return: false: this thread goes on.
 */
static bool fall_asleep(struct engine *e, u64 *wake_ns)
{
	set_sleeping(e);
	if (e->serve(e, ENGINE_RUN_ALL))
		/* Without it somebody has called a thread meanwhile. */
		return !__atomic_exchange_n(&e->sleeping, false, __ATOMIC_SEQ_CST);
	*wake_ns = next_wake_ns(e);
	return true;
}

static u64 spin_ns(const struct engine *e)
{
	return e->config.processors == 1 || port_alone() ? 0 : SPIN_NS;
}

/* Where its time alone woke it, and not a kick, nobody is about to give it more. */
static enum served serve_fully(struct engine *e, u64 *wake_ns)
{
	bool kicked = !__atomic_exchange_n(&e->sleeping, false, __ATOMIC_SEQ_CST);
	u64 spin = spin_ns(e), moved_ns = port_now_ns() - (kicked ? 0 : spin);

	while (!is_stopping(e)) {
		if (e->serve(e, ENGINE_RUN_ALL)) {
			if (pool_is_wanted(e->pool))
				return SERVED_AGAIN;
			moved_ns = port_now_ns();
		} else if (port_now_ns() - moved_ns < spin && !pool_is_wanted(e->pool)) {
			port_relax();
		} else if (fall_asleep(e, wake_ns)) {
			return SERVED_ASLEEP;
		} else {
			moved_ns = port_now_ns();
		}
	}
	return SERVED_ASLEEP;
}

#define BRIEF_MOST 64u /* looks in a row */

/* A kick of now on says that there is something new to look at. */
static enum served serve_briefly(struct engine *e)
{
	u32 looks = 0;

	set_sleeping(e);
	while (looks++ < BRIEF_MOST && !is_stopping(e) && e->serve(e, ENGINE_RUN_BETWEEN))
		;
	return SERVED_LOOKED;
}

static enum served serve_engine(struct engine *e, bool briefly, u64 *wake_ns)
{
	return briefly ? serve_briefly(e) : serve_fully(e, wake_ns);
}

int service_start(struct engine *e, int (*run)(struct engine *e, enum engine_run_mode mode))
{
	int ret;

	e->serve = run;
	e->sleeping = true;
	ret = pool_enter(e, serve_engine);
	if (ret)
		e->served.serve = NULL;
	return ret;
}

void service_stop(struct engine *e)
{
	if (!e->served.serve)
		return;
	__atomic_store_n(&e->stopping, true, __ATOMIC_RELEASE);
	pool_leave(e);
	e->served.serve = NULL;
}

void engine_kick(struct engine *engine)
{
	EMBENG_FULL_BARRIER();
	if (engine->served.serve && __atomic_load_n(&engine->sleeping, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&engine->sleeping, false, __ATOMIC_SEQ_CST))
		pool_want(engine);
}
