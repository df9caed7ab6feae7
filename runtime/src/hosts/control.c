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

int hosts_exchange(struct hosts *h, struct embeng_exchange *x, struct embeng_bytes *received)
{
	int ret = embeng_group_exchange(h->group, x, received, NULL), cause;

	/* A host's status is no failure of the group. */
	cause = ret ? group_cause(h->group) : 0;
	if (cause)
		hosts_fail(h, cause);
	return cause ? cause : ret;
}

/* -- collective calls -- */

struct progress {
	uint64_t looked, updated;
};

static bool has_come(struct embeng *e, void *arg)
{
	const struct progress *p = arg;

	return e->hosts->looked >= p->looked && e->hosts->updated >= p->updated;
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

int hosts_enter(struct embeng *e)
{
	struct hosts *h = e->hosts;
	struct progress p;
	int ret;

	pthread_mutex_lock(&h->turn);
	p = own_progress(h);
	pthread_mutex_lock(&e->lock);
	ret = hosts_check(h);
	pthread_mutex_unlock(&e->lock);
	if (!ret && e->replica_count < h->hosts)
		ret = agree_on_step(h, &p);
	pthread_mutex_lock(&e->lock);
	ret = ret ? ret : hosts_wait(h, has_come, &p, deadline_never());
	h->call_step = p.updated;
	pthread_mutex_unlock(&e->lock);
	if (ret)
		pthread_mutex_unlock(&h->turn);
	return ret;
}

void hosts_leave(struct embeng *e)
{
	pthread_mutex_unlock(&e->hosts->turn);
}

int hosts_control(struct embeng *e, const char *phase, int status, const struct embeng_bytes *send,
		  struct embeng_bytes *received)
{
	struct hosts *h = e->hosts;
	struct embeng_exchange x = hosts_step_exchange(h, phase, h->call_step, CHANNEL_CONTROL);
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	x.status = status;
	x.text = error.text;
	x.send = send;
	return hosts_exchange(h, &x, received);
}
