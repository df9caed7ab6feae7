// SPDX-License-Identifier: MIT
/*
 * The thread that serves the queues of an engine. It is awake while there is work, and a little
 * longer where other threads can give it some meanwhile. Then it sleeps on the engine's bell.
 *
 * The thread lives from service_start() to service_stop(). It takes engine->lock for each look at
 * the device and to find out how long it may sleep; engine->sleeping and engine->stopping are
 * atomic.
 */
#include <linux/errno.h>

#include "device/device.h"

#define SPIN_NS 20000u

static bool is_stopping(struct engine *e)
{
	return __atomic_load_n(&e->stopping, __ATOMIC_ACQUIRE);
}

/* Until the next delayed NOP or heartbeat. */
static u64 longest_sleep_ns(struct engine *e)
{
	u64 now = port_now_ns(), wake, most = U64_MAX;

	port_lock(e->lock);
	wake = e->wake_ns;
	if (e->heartbeat_ms && e->queues[0])
		most = (u64)e->heartbeat_ms * 1000000;
	port_unlock(e->lock);
	if (wake == U64_MAX)
		return most;
	if (wake <= now)
		return 0;
	return wake - now < most ? wake - now : most;
}

/*
 * The last look comes after @sleeping is up, and engine_kick() looks at @sleeping after what
 * it was called for: one of the two sees the other.
 */
static void sleep_on_bell(struct engine *e)
{
	u32 seen = port_event_read(e->bell);
	u64 timeout;

	__atomic_store_n(&e->sleeping, true, __ATOMIC_SEQ_CST);
	EMBENG_FULL_BARRIER();
	if (!e->serve(e, ENGINE_RUN_ALL) && !is_stopping(e)) {
		timeout = longest_sleep_ns(e);
		if (timeout)
			port_event_wait(e->bell, seen, timeout);
	}
	__atomic_store_n(&e->sleeping, false, __ATOMIC_SEQ_CST);
}

static u64 spin_ns(const struct engine *e)
{
	return e->config.processors == 1 || port_alone() ? 0 : SPIN_NS;
}

static void serve_engine(void *arg)
{
	struct engine *e = arg;
	u64 moved_ns = port_now_ns(), spin = spin_ns(e);

	while (!is_stopping(e)) {
		if (e->serve(e, ENGINE_RUN_ALL)) {
			moved_ns = port_now_ns();
		} else if (port_now_ns() - moved_ns < spin) {
			port_relax();
		} else {
			sleep_on_bell(e);
			moved_ns = port_now_ns();
			spin = spin_ns(e);
		}
	}
}

int service_start(struct engine *e, int (*run)(struct engine *e, enum engine_run_mode mode))
{
	e->serve = run;
	e->service = port_thread_start(serve_engine, e, "embeng-service", -1);
	return e->service ? 0 : -ENOMEM;
}

void service_stop(struct engine *e)
{
	if (!e->service)
		return;
	__atomic_store_n(&e->stopping, true, __ATOMIC_RELEASE);
	port_event_signal(e->bell);
	port_thread_join(e->service);
	e->service = NULL;
}

void engine_kick(struct engine *engine)
{
	EMBENG_FULL_BARRIER();
	if (__atomic_load_n(&engine->sleeping, __ATOMIC_SEQ_CST))
		port_event_signal(engine->bell);
}
