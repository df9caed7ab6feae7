// SPDX-License-Identifier: MIT
/*
 * Collective calls, failures, and waiting for other threads of the handle: what all other files of this
 * folder stand on.
 *
 * hosts.h says which locks there are. Functions that take a &struct hosts and wait are called with e->lock
 * held, which they release while they wait; the others are called without it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/ask.h"
#include "base/clock.h"
#include "group/group.h"
#include "hosts.h"

/* A thread looks so often whether embeng_interrupt() was called. */
#define NAP_NS 20000000ull

void hosts_fail(struct hosts *h, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	pthread_mutex_lock(&h->e->lock);
	if (!h->failed) {
		h->failed = code;
		snprintf(h->failed_text, sizeof(h->failed_text), "%s", error.text);
	}
	pthread_cond_broadcast(&h->changed);
	pthread_mutex_unlock(&h->e->lock);
}

void hosts_blame(struct hosts *h, int code)
{
	hosts_fail(h, group_blame(h->group, code));
}

int hosts_check(struct hosts *h)
{
	const bool told = h->told;

	if (!h->failed)
		return 0;
	h->told = true;
	return told ? fail(-ESHUTDOWN, "the group of hosts is dead since: %.480s", h->failed_text)
		    : fail(h->failed, "%s", h->failed_text);
}

/* A call in flight returns this. */
static int say_failure(struct hosts *h)
{
	h->told = true;
	return fail(h->failed, "%s", h->failed_text);
}

/* Nothing moves any more before the program of this host makes a call. */
static bool stands_idle(struct hosts *h)
{
	return !h->working && !steps_can_move(h);
}

static bool waits_for_own_view(struct hosts *h, struct deadline deadline)
{
	struct slot *view;

	if (!deadline.program || deadline.at != UINT64_MAX || !stands_idle(h))
		return false;
	view = missing_view(h->e);
	return view && pthread_equal(view->viewer, pthread_self());
}

static int check_wait(struct hosts *h, struct deadline deadline)
{
	if (h->failed)
		return say_failure(h);
	if (deadline.program && __atomic_load_n(&h->e->interrupted, __ATOMIC_RELAXED))
		return fail(-EINTR,
			    "the wait was ended by embeng_interrupt(); nothing is lost: turn it "
			    "off, and call again to go on");
	if (waits_for_own_view(h, deadline))
		return -EDEADLK;
	if (deadline.poll ? stands_idle(h) : deadline.at != UINT64_MAX && now_ns() >= deadline.at)
		return -ETIME;
	return 0;
}

int hosts_wait(struct hosts *h, bool (*ready)(struct embeng *e, void *arg), void *arg,
	       struct deadline deadline)
{
	while (!ready(h->e, arg)) {
		uint64_t until = now_ns() + NAP_NS;
		struct timespec at;
		int ret = check_wait(h, deadline);

		if (ret)
			return ret;
		until = until < deadline.at ? until : deadline.at;
		at = (struct timespec){(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
		pthread_cond_timedwait(&h->changed, &h->e->lock, &at);
	}
	return 0;
}

/* @ret: that of a call on the group. A host's status is no failure of the group. */
static int settle_call(struct hosts *h, int ret)
{
	const int cause = ret ? group_cause(h->group) : 0;

	if (cause)
		hosts_fail(h, cause);
	return cause ? cause : ret;
}

int hosts_exchange(struct hosts *h, struct embeng_exchange *x, struct embeng_bytes *received)
{
	return settle_call(h, embeng_group_exchange(h->group, x, received, NULL));
}

/* -- collective calls -- */

struct progress {
	uint64_t looked, updated;
};

static bool has_come(struct embeng *e, void *arg)
{
	const struct progress *p = arg;
	const struct hosts *h = e->hosts;

	return h->looked >= p->looked && h->updated >= p->updated;
}

/* Steps have come, and a lookup that waits for no gradients was made: it precedes the call, as on one device. */
static bool has_been_looked_up(struct embeng *e, void *arg)
{
	const struct progress *p = arg;
	const struct hosts *h = e->hosts;

	if (h->answered < p->looked && stage_can_move(h, CHANNEL_ANSWERS))
		return false;
	return has_come(e, arg);
}

/* Steps whose batches and whose gradients this host's program has handed in. */
static struct progress own_progress(struct hosts *h)
{
	struct progress p = {0};

	if (hosts_serves_only(h))
		return p;
	pthread_mutex_lock(&h->e->lock);
	p.updated = session_complete(h->e);
	p.looked = steps_enqueued(h);
	pthread_mutex_unlock(&h->e->lock);
	return p;
}

/* Hosts without replicas learn from the others how far the call sees, and all check that it is one step. */
static int agree_on_step(struct hosts *h, struct progress *p)
{
	struct embeng_bytes *send = h->send[CHANNEL_CONTROL];
	struct embeng_bytes *received = h->received[CHANNEL_CONTROL];
	struct embeng_exchange x = hosts_step_exchange(h, "call", 0, CHANNEL_CONTROL);
	uint32_t first = UINT32_MAX;
	int ret;

	for (uint32_t i = 0; i < h->hosts; i++)
		send[i] = (struct embeng_bytes){p, hosts_serves_only(h) ? 0 : sizeof(*p)};
	x.send = send;
	x.timeout_ns = hosts_serves_only(h) ? HOSTS_NO_LIMIT : 0;
	ret = hosts_exchange(h, &x, received);
	for (uint32_t i = 0; !ret && i < h->hosts; i++) {
		struct progress other;

		if (received[i].bytes != sizeof(other))
			continue;
		memcpy(&other, received[i].data, sizeof(other));
		if (first == UINT32_MAX) {
			first = i;
			*p = other;
		} else if (other.updated != p->updated) {
			ret = fail(-EPROTO,
				   "a call of all hosts: host %" PRIu32 " (%s) makes it after step "
				   "%" PRIu64 ", host %" PRIu32 " (%s) after step %" PRIu64,
				   i, embeng_group_host(h->group, i), other.updated, first,
				   embeng_group_host(h->group, first), p->updated);
			hosts_blame(h, ret);
		}
	}
	return ret;
}

/* All steps that this host has handed in have passed. @looks: the call changes nothing */
static int await_progress(struct hosts *h, struct deadline deadline, bool looks)
{
	struct progress p = own_progress(h);
	int ret = 0;

	if (h->e->replica_count < h->hosts)
		ret = agree_on_step(h, &p);
	pthread_mutex_lock(&h->e->lock);
	ret = ret ? ret : hosts_wait(h, looks ? has_come : has_been_looked_up, &p, deadline);
	h->call_step = p.updated;
	if (hosts_is_late(h, ret))
		ret = fail(ret,
			   "the lookup would wait for steps of other hosts; call again to go on");
	pthread_mutex_unlock(&h->e->lock);
	return ret;
}

static int enter_hosts(struct embeng *e, struct deadline deadline, bool looks)
{
	struct hosts *h = e->hosts;
	int ret;

	pthread_mutex_lock(&h->turn);
	pthread_mutex_lock(&e->lock);
	ret = hosts_check(h);
	pthread_mutex_unlock(&e->lock);
	if (!ret && h->looking && !looks)
		ret = h->settle(h, deadline);
	if (!ret && !h->looking)
		ret = await_progress(h, deadline, looks);
	if (ret)
		pthread_mutex_unlock(&h->turn);
	return ret;
}

int hosts_enter(struct embeng *e)
{
	return enter_hosts(e, deadline_never(), false);
}

int hosts_enter_lookup(struct embeng *e, struct deadline deadline)
{
	return enter_hosts(e, deadline, true);
}

void hosts_leave(struct embeng *e)
{
	pthread_mutex_unlock(&e->hosts->turn);
}

int hosts_control_begin(struct embeng *e, const char *phase, int status,
			const struct embeng_bytes *send)
{
	struct hosts *h = e->hosts;
	struct embeng_exchange x = hosts_step_exchange(h, phase, h->call_step, CHANNEL_CONTROL);
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	x.status = status;
	x.text = error.text;
	x.send = send;
	return settle_call(h, embeng_group_begin(h->group, &x, NULL));
}

int hosts_control_wait(struct embeng *e, struct deadline deadline)
{
	struct hosts *h = e->hosts;
	int ret = embeng_group_wait(h->group, CHANNEL_CONTROL, 0, NULL);

	while (ret == -ETIME) {
		const uint64_t now = now_ns();
		uint64_t nap = NAP_NS;

		if (deadline.poll || (deadline.at != UINT64_MAX && now >= deadline.at))
			return fail(-ETIME,
				    "embeng_lookup: not all hosts have made the call, which goes "
				    "on; call again to wait for it");
		ret = ask_program();
		if (ret)
			return ret;
		if (deadline.program && __atomic_load_n(&e->interrupted, __ATOMIC_RELAXED))
			return fail(-EINTR,
				    "the lookup was ended by embeng_interrupt(), and goes on; turn "
				    "it off, and call again to wait for it");
		if (deadline.at != UINT64_MAX && deadline.at - now < nap)
			nap = deadline.at - now;
		ret = embeng_group_wait(h->group, CHANNEL_CONTROL, (int64_t)nap, NULL);
	}
	return ret;
}

int hosts_control_end(struct embeng *e, struct embeng_bytes *received)
{
	struct hosts *h = e->hosts;

	return settle_call(h, embeng_group_end(h->group, CHANNEL_CONTROL, received, NULL));
}

int hosts_control(struct embeng *e, const char *phase, int status, const struct embeng_bytes *send,
		  struct embeng_bytes *received)
{
	const int ret = hosts_control_begin(e, phase, status, send);

	return ret ? ret : hosts_control_end(e, received);
}
