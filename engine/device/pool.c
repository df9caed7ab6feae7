// SPDX-License-Identifier: MIT
/*
 * The threads of a pool, and which device each of them serves. A device that has something to do
 * wants a thread (pool_want()) and is served in turn: first by the service thread; while that one is
 * at work, by a helper that comes past (help_devices()); and while all threads are at work, small
 * things are done between the pieces of the commands that they work on (pool_lend()). A device that
 * has been served goes to the end of the queue if others want the thread, however much it has left.
 *
 * The pool's lock guards the queue. It is taken by itself: no other lock is taken inside it, and
 * devices are served without it. A device that is being served is counted (served.servers), so that
 * it does not go away meanwhile.
 */
#include <linux/errno.h>

#include "pool.h"

#define SPIN_NS 10000u

static bool make_parts(struct pool *pool)
{
	u32 i;

	pool->lock = port_mutex_new();
	pool->bell = port_event_new();
	pool->work = port_event_new();
	if (!pool->lock || !pool->bell || !pool->work)
		return false;
	for (i = 0; i < POOL_JOBS; i++) {
		pool->jobs[i].left = port_event_new();
		if (!pool->jobs[i].left)
			return false;
	}
	return true;
}

struct pool *pool_new(void)
{
	struct pool *pool = port_alloc(sizeof(*pool));

	if (!pool)
		return NULL;
	pool->wake_ns = U64_MAX;
	if (!make_parts(pool)) {
		pool_free(pool);
		return NULL;
	}
	return pool;
}

static void free_event(struct port_event *event)
{
	if (event)
		port_event_free(event);
}

void pool_free(struct pool *pool)
{
	u32 i;

	if (!pool)
		return;
	POOL_STORE(&pool->stopping, 1);
	if (pool->bell)
		port_event_signal(pool->bell);
	if (pool->work)
		port_event_signal(pool->work);
	for (i = 0; i < POOL_THREADS; i++)
		if (pool->threads[i].thread)
			port_thread_join(pool->threads[i].thread);
	for (i = 0; i < POOL_JOBS; i++)
		free_event(pool->jobs[i].left);
	free_event(pool->work);
	free_event(pool->bell);
	if (pool->lock)
		port_mutex_free(pool->lock);
	port_free(pool);
}

static void count_fresh(struct pool *pool, struct engine *e, bool looked)
{
	if (!looked)
		POOL_ADD(&pool->fresh, 1);
	e->served.looked = looked;
}

static void append_wanted(struct pool *pool, struct engine *e, bool looked)
{
	e->served.queued = true;
	e->served.next = NULL;
	if (pool->newest)
		pool->newest->served.next = e;
	else
		pool->oldest = e;
	pool->newest = e;
	POOL_ADD(&pool->wanted, 1);
	count_fresh(pool, e, looked);
}

static void remove_wanted(struct pool *pool, struct engine *before, struct engine *e)
{
	if (before)
		before->served.next = e->served.next;
	else
		pool->oldest = e->served.next;
	if (pool->newest == e)
		pool->newest = before;
	e->served.queued = false;
	POOL_ADD(&pool->wanted, -1u);
	if (!e->served.looked)
		POOL_ADD(&pool->fresh, -1u);
}

/*
 * The next one in turn that is not @other, of those that nobody has looked at if it is to be done
 * @briefly. The lock is held.
 */
static struct engine *take_wanted(struct pool *pool, const struct engine *other, bool briefly)
{
	struct engine *before = NULL, *e = pool->oldest;

	while (e && (e == other || (briefly && e->served.looked))) {
		before = e;
		e = e->served.next;
	}
	if (!e)
		return NULL;
	remove_wanted(pool, before, e);
	e->served.servers++;
	e->served.wake_ns = U64_MAX;
	return e;
}

/* The one that is to be woken for a device that was queued, NULL: nobody. The lock is held. */
static struct port_event *choose_bell(struct pool *pool, const struct engine *e)
{
	if (!pool->serving)
		return pool->bell;
	return pool->current == e ? NULL : pool->work;
}

/* The lock is let go. */
static void ring_bell(struct port_event *bell)
{
	if (bell)
		port_event_signal_some(bell, 1);
}

void pool_want(struct engine *e)
{
	struct pool *pool = e->pool;
	struct port_event *bell;

	port_lock(pool->lock);
	if (!e->served.queued && !e->served.leaving)
		append_wanted(pool, e, false);
	else if (e->served.queued && e->served.looked)
		count_fresh(pool, e, false);
	bell = choose_bell(pool, e);
	port_unlock(pool->lock);
	ring_bell(bell);
}

/* True: nobody else lends threads of this device, nor will until end_lending(). */
static bool begin_lending(struct engine *e)
{
	return !__atomic_exchange_n(&e->served.lending, true, __ATOMIC_SEQ_CST);
}

static void end_lending(struct engine *e)
{
	__atomic_store_n(&e->served.lending, false, __ATOMIC_SEQ_CST);
}

/* The commands of a device that is served briefly have pieces, too, in which nobody else is. */
static enum served call_serve(struct engine *e, bool briefly, u64 *wake_ns)
{
	bool lending = briefly && begin_lending(e);
	enum served how = e->served.serve(e, briefly, wake_ns);

	if (lending)
		end_lending(e);
	return how;
}

static void serve_taken(struct pool *pool, struct engine *e, bool briefly)
{
	u64 wake_ns = U64_MAX;
	enum served how = call_serve(e, briefly, &wake_ns);
	struct port_event *bell = NULL;
	bool again, sooner;

	port_lock(pool->lock);
	if (wake_ns < e->served.wake_ns)
		e->served.wake_ns = wake_ns;
	sooner = wake_ns < pool->wake_ns;
	if (sooner)
		pool->wake_ns = wake_ns;
	again = how != SERVED_ASLEEP && !e->served.leaving && !e->served.queued;
	if (again)
		append_wanted(pool, e, how == SERVED_LOOKED);
	/* The service thread may sleep until a later time. */
	if (again || (sooner && !pool->serving))
		bell = choose_bell(pool, e);
	if (!--e->served.servers && e->served.leaving)
		port_event_signal(e->bell);
	port_unlock(pool->lock);
	ring_bell(bell);
}

/* The lock is held. Those whose time has come want a thread, unless they have or want one. */
static void wake_due(struct pool *pool, u64 now)
{
	struct engine *e;

	pool->wake_ns = U64_MAX;
	for (e = pool->members; e; e = e->served.next_member) {
		if (e->served.wake_ns <= now) {
			e->served.wake_ns = U64_MAX;
			if (!e->served.queued)
				append_wanted(pool, e, false);
		} else if (e->served.wake_ns < pool->wake_ns) {
			pool->wake_ns = e->served.wake_ns;
		}
	}
}

/* NULL: the pool ends. */
static struct engine *await_wanted(struct pool *pool)
{
	struct engine *e;
	u64 now, wake;
	u32 seen;

	for (;;) {
		seen = port_event_read(pool->bell);
		if (POOL_LOAD(&pool->stopping))
			return NULL;
		now = port_now_ns();
		port_lock(pool->lock);
		if (pool->wake_ns <= now)
			wake_due(pool, now);
		e = take_wanted(pool, NULL, false);
		pool->current = e;
		POOL_STORE(&pool->serving, e != NULL);
		wake = pool->wake_ns;
		port_unlock(pool->lock);
		if (e)
			return e;
		port_event_wait(pool->bell, seen, wake == U64_MAX ? U64_MAX : wake - now);
	}
}

static void serve_devices(void *arg)
{
	struct pool_thread *me = arg;
	struct engine *e;

	while ((e = await_wanted(me->pool)))
		serve_taken(me->pool, e, false);
}

/*
 * A helper serves a device only where the service thread cannot. The one that the service thread serves
 * is left to it: there a helper helps more by taking tasks.
 */
static bool help_devices(struct pool *pool)
{
	struct engine *e;

	if (!pool_is_wanted(pool) || !POOL_LOAD(&pool->serving))
		return false;
	port_lock(pool->lock);
	e = pool->serving ? take_wanted(pool, pool->current, false) : NULL;
	port_unlock(pool->lock);
	if (e)
		serve_taken(pool, e, false);
	return e;
}

static void help_pool(void *arg)
{
	struct pool_thread *me = arg;
	struct pool *pool = me->pool;
	u64 since = port_now_ns();
	u32 seen;

	for (;;) {
		seen = port_event_read(pool->work);
		if (POOL_LOAD(&pool->stopping))
			return;
		if (help_devices(pool) || pool_help(pool, me)) {
			since = port_now_ns();
		} else if (port_now_ns() - since < SPIN_NS) {
			port_relax();
		} else {
			port_event_wait(pool->work, seen, U64_MAX);
			since = port_now_ns();
		}
	}
}

static bool start_thread(struct pool *pool, u32 number, int cpu)
{
	struct pool_thread *t = &pool->threads[number];

	t->pool = pool;
	t->number = number;
	t->last = 0;
	t->thread = port_thread_start(number ? help_pool : serve_devices, t,
				      number ? "embeng-core" : "embeng-service", cpu);
	return t->thread;
}

bool pool_grow(struct pool *pool, u32 helpers, bool roam)
{
	bool started = true;

	port_lock(pool->lock);
	while (started && pool->helpers < helpers) {
		started = start_thread(pool, pool->helpers + 1, roam ? -1 : (int)pool->helpers + 1);
		pool->helpers += started;
	}
	port_unlock(pool->lock);
	return started;
}

int pool_enter(struct engine *e, enum served (*serve)(struct engine *e, bool briefly, u64 *wake_ns))
{
	struct pool *pool = e->pool;
	bool started;

	e->served.serve = serve;
	e->served.wake_ns = U64_MAX;
	port_lock(pool->lock);
	started = pool->threads[0].thread || start_thread(pool, 0, -1);
	if (started) {
		e->served.next_member = pool->members;
		pool->members = e;
	}
	port_unlock(pool->lock);
	return started ? 0 : -ENOMEM;
}

static void remove_member(struct pool *pool, struct engine *e)
{
	struct engine **at = &pool->members, *before = NULL, *other;

	while (*at != e)
		at = &(*at)->served.next_member;
	*at = e->served.next_member;
	if (!e->served.queued)
		return;
	for (other = pool->oldest; other != e; other = other->served.next)
		before = other;
	remove_wanted(pool, before, e);
}

void pool_leave(struct engine *e)
{
	struct pool *pool = e->pool;
	u32 seen;

	port_lock(pool->lock);
	e->served.leaving = true;
	remove_member(pool, e);
	while (e->served.servers) {
		seen = port_event_read(e->bell);
		port_unlock(pool->lock);
		port_event_wait(e->bell, seen, U64_MAX);
		port_lock(pool->lock);
	}
	port_unlock(pool->lock);
}

u64 pool_lend(struct engine *e, u64 most_ns)
{
	struct pool *pool = e->pool;
	struct engine *other;
	u64 began, now;

	if (!pool || !POOL_LOAD(&pool->fresh) || !begin_lending(e))
		return 0;
	began = now = port_now_ns();
	while (now - began < most_ns) {
		port_lock(pool->lock);
		other = take_wanted(pool, e, true);
		port_unlock(pool->lock);
		if (!other)
			break;
		serve_taken(pool, other, true);
		now = port_now_ns();
	}
	end_lending(e);
	return now - began;
}
