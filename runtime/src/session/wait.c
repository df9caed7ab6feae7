// SPDX-License-Identifier: MIT
/*
 * Waits for the engine, with a deadline, and says when a wait is pointless because the device is
 * lost or nothing can move before the program does something.
 *
 * Called with e->lock held, which is released while the thread works for the engine or sleeps.
 */
#include "wait.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "host/port.h"

/* Rounds without movement before sleeping: a completion is often microseconds away. */
#define SPINS 64
/* A change by another thread of ours interrupts nobody, so sleepers look now and then. */
#define NAP_NS 2000000ull

struct deadline deadline_in(int64_t timeout_ns)
{
	uint64_t at;

	if (!timeout_ns)
		return (struct deadline){.poll = true, .at = UINT64_MAX};
	if (timeout_ns < 0 || __builtin_add_overflow(now_ns(), (uint64_t)timeout_ns, &at))
		at = UINT64_MAX;
	return (struct deadline){.program = true, .at = at};
}

struct deadline deadline_never(void)
{
	return (struct deadline){.at = UINT64_MAX};
}

bool deadline_is_never(struct deadline deadline)
{
	return !deadline.poll && deadline.at == UINT64_MAX;
}

/*
 * Nothing can move before the program does something: all queues are reported
 * in one epoch that has seen everything, or nothing is in flight at all.
 */
static bool stands_still(struct embeng *e)
{
	struct embeng_queue_report report;
	uint32_t epoch = 0, in_flight = 0;
	bool reported = true;
	struct ring *ring;

	for (uint32_t i = 0; (ring = session_ring(e, i)); i++) {
		in_flight += ring->in_flight;
		if (!reported || !ring_report(ring, &report) || report.tail != ring->sq_tail ||
		    (epoch && report.epoch != epoch) || report.state == EMBENG_QUEUE_CQ_FULL)
			reported = false;
		else
			epoch = report.epoch;
	}
	return reported || !in_flight;
}

static struct ring *find_strayed(struct embeng *e)
{
	struct ring *ring;

	for (uint32_t i = 0; (ring = session_ring(e, i)); i++)
		if (ring->strayed)
			return ring;
	return NULL;
}

int session_lost(struct embeng *e)
{
	struct ring *ring;
	bool dead = false;
	int ret;

	for (uint32_t i = 0; (ring = session_ring(e, i)); i++)
		dead |= ring_dead(ring);
	ret = e->device->ops->lost(e->device, dead);
	ring = find_strayed(e);
	if (ret || !ring)
		return ret;
	/* Some command will never be seen to end: whoever waited for it waited for ever. */
	return fail(-EIO,
		    "queue %u: the device completed cookie %#" PRIx64
		    ", which is no command under way; close this engine and reset the device",
		    ring->queue.number, ring->stray);
}

static int lost_when_settled(struct embeng *e)
{
	if (e->device->ops->settle)
		e->device->ops->settle(e->device);
	return session_lost(e);
}

int session_aborted(struct embeng *e, const struct request *request)
{
	return request->status == EMBENG_STATUS_ABORTED ? lost_when_settled(e) : 0;
}

int session_failed(struct embeng *e)
{
	int ret = 0;

	if (e->failed == -ECANCELED)
		ret = lost_when_settled(e);
	else if (e->failed || find_strayed(e))
		ret = session_lost(e);
	return ret || !e->failed ? ret : fail(e->failed, "%s", e->failed_text);
}

static void arm_all(struct embeng *e)
{
	struct ring *ring;

	for (uint32_t i = 0; (ring = session_ring(e, i)); i++)
		ring_arm(ring);
	embeng_arm_then_recheck();
}

/* One round without the lock: work, or sleep when @armed and nothing happens. */
static bool move_once(struct embeng *e, uint32_t seen, bool armed, struct deadline deadline)
{
	const struct device_ops *ops = e->device->ops;
	uint64_t now, nap = NAP_NS;

	if (ops->run(e->device, true))
		return true;
	if (!armed) {
		port_relax();
		return false;
	}
	now = now_ns();
	if (deadline.at > now) {
		nap = deadline.at - now < nap ? deadline.at - now : nap;
		ops->event_wait(e->device, seen, nap);
	}
	return false;
}

/* Sets one number alone, and so may be called by a signal handler. */
void embeng_interrupt(struct embeng *e, int on)
{
	if (e)
		__atomic_store_n(&e->interrupted, on != 0, __ATOMIC_RELAXED);
}

static int check_interrupt(struct embeng *e, struct deadline deadline)
{
	if (!deadline.program || !__atomic_load_n(&e->interrupted, __ATOMIC_RELAXED))
		return 0;
	return fail(-EINTR,
		    "the wait was ended by embeng_interrupt(); nothing is lost: turn it off, "
		    "and call again to go on");
}

/*
 * A wait without a limit for gradients of a view that this very thread dequeued: it would never
 * end, unless another thread gave them.
 */
static bool waits_for_itself(struct embeng *e, bool still, struct deadline deadline)
{
	struct slot *view;

	if (!still || !deadline.program || deadline.lookups || deadline.at != UINT64_MAX)
		return false;
	view = missing_view(e);
	return view && pthread_equal(view->viewer, pthread_self());
}

const char *wait_advice(int ret)
{
	return ret == -EDEADLK ? "; this thread has its view: apply gradients or discard it "
				 "first, or set a timeout if another thread does"
			       : "";
}

static int check_deadline(bool still, struct deadline deadline)
{
	if (deadline.poll)
		return still ? -ETIME : 0;
	return deadline.at != UINT64_MAX && now_ns() >= deadline.at ? -ETIME : 0;
}

/* A ring is dead after it has said what became of its commands. */
static bool is_settled(struct embeng *e, bool (*ready)(struct embeng *e, void *arg), void *arg)
{
	session_reap(e);
	return ready(e, arg);
}

int wait_until(struct embeng *e, bool (*ready)(struct embeng *e, void *arg), void *arg,
	       struct deadline deadline)
{
	uint32_t idle = 0;

	/* Small work was done when it was given. */
	if (is_settled(e, ready, arg))
		return 0;
	for (;;) {
		uint32_t seen = e->device->ops->event_read(e->device);
		bool armed = idle > SPINS, moved, still;
		int ret;

		if (armed)
			arm_all(e);
		/* Before the look: what completed before the report must be seen. */
		still = stands_still(e);
		session_reap(e);
		if (ready(e, arg))
			return 0;
		ret = session_lost(e);
		if (ret && is_settled(e, ready, arg))
			return 0;
		ret = ret ? ret : check_interrupt(e, deadline);
		if (!ret && waits_for_itself(e, still, deadline))
			ret = -EDEADLK;
		ret = ret ? ret : check_deadline(still, deadline);
		if (ret)
			return ret;
		pthread_mutex_unlock(&e->lock);
		moved = move_once(e, seen, armed, deadline);
		pthread_mutex_lock(&e->lock);
		idle = moved ? 0 : idle + 1;
	}
}

static bool is_request_done(struct embeng *e, void *arg)
{
	const struct request *request = arg;

	(void)e;
	return request->done;
}

int wait_done(struct embeng *e, struct request *request, struct deadline deadline)
{
	return wait_until(e, is_request_done, request, deadline);
}
