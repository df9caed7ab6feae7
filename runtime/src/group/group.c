// SPDX-License-Identifier: MIT
/*
 * The calls of a group: opening, closing and exchanges. They only hand work to the service thread
 * and wait for it.
 *
 * A group lives from embeng_group_open() to embeng_group_close(), which no other call may overlap.
 * Its lock is not held while a program's thread waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ask.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fork.h"
#include "group.h"
#include "host/thread.h"

#define DEADLINE_NS (300ull * 1000000000u)
#define PIECE_LEAST 4096u
#define ASK_NS 50000000
/* More is no limit: 146 years, behind which the clock does not count on. */
#define LONGEST_NS (UINT64_MAX / 4)

/* Gives a sentence to a caller that wants it. */
static int give_group_error(int ret, struct embeng_error *error)
{
	if (ret && error)
		embeng_last_error(error);
	return ret;
}

static int check_transport(const struct embeng_transport *from, struct embeng_transport *t)
{
	int ret = config_take(t, from, sizeof(*t), "embeng_transport");

	if (ret)
		return ret;
	if (!t->post || !t->test || !t->drop || !t->close || !t->wait != !t->wake)
		return fail(-EINVAL,
			    "embeng_group_open: the transport lacks a function; post, "
			    "test, drop and close must be there, wait and wake both or none");
	if (!t->ranks || t->ranks > EMBENG_GROUP_RANKS_MOST || t->rank >= t->ranks)
		return fail(-ERANGE,
			    "embeng_group_open: rank %" PRIu32 " of %" PRIu32
			    " is not possible; a group has 1 to %d ranks, counted from 0",
			    t->rank, t->ranks, EMBENG_GROUP_RANKS_MOST);
	t->name[sizeof(t->name) - 1] = '\0';
	return 0;
}

static int take_options(const struct embeng_group_options *from, struct embeng_group *g)
{
	struct embeng_group_options o = EMBENG_INIT(embeng_group_options);
	int ret = from ? config_take(&o, from, sizeof(o), "embeng_group_options") : 0;

	if (ret)
		return ret;
	g->deadline_ns = o.deadline_ns ? o.deadline_ns : DEADLINE_NS;
	if (g->deadline_ns > LONGEST_NS)
		g->deadline_ns = LONGEST_NS;
	g->piece_bytes = o.piece_bytes ? o.piece_bytes : GROUP_PIECE_MOST;
	if (g->piece_bytes < PIECE_LEAST || g->piece_bytes > GROUP_PIECE_MOST)
		return fail(-ERANGE,
			    "embeng_group_open: piece_bytes %" PRIu64 " must be %u to %llu",
			    g->piece_bytes, PIECE_LEAST, GROUP_PIECE_MOST);
	return 0;
}

static void init_locks(struct embeng_group *g)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->changed, &monotonic);
	pthread_cond_init(&g->work, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static void free_group(struct embeng_group *g)
{
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->changed);
	pthread_cond_destroy(&g->work);
	free(g->names);
	free(g->controls);
	free(g);
}

static int make_group(const struct embeng_transport *t, const struct embeng_group_options *options,
		      struct embeng_group **out)
{
	struct embeng_group *g = calloc(1, sizeof(*g));
	int ret;

	if (!g)
		return fail(-ENOMEM, "embeng_group_open: there is no memory for a group");
	init_locks(g);
	g->transport = *t;
	g->rank = t->rank;
	g->ranks = t->ranks;
	g->generation = fork_generation();
	g->names = calloc(t->ranks, sizeof(*g->names));
	g->controls = calloc(t->ranks, sizeof(*g->controls));
	ret = take_options(options, g);
	if (!ret && (!g->names || !g->controls))
		ret = fail(-ENOMEM, "embeng_group_open: there is no memory for %" PRIu32 " ranks",
			   t->ranks);
	if (ret)
		free_group(g);
	else
		*out = g;
	return ret;
}

static int start_service(struct embeng_group *g)
{
	int ret = trial_listen(g);

	if (!ret) {
		ret = thread_start(&g->service, "embeng-group", service_run, g);
		if (ret)
			fail(ret, "embeng_group_open: a thread cannot be started");
	}
	if (ret)
		trial_clear(g);
	return ret;
}

static void stop_service(struct embeng_group *g)
{
	pthread_mutex_lock(&g->lock);
	g->stop = true;
	pthread_cond_signal(&g->work);
	pthread_mutex_unlock(&g->lock);
	if (g->transport.wake)
		g->transport.wake(g->transport.self);
	pthread_join(g->service, NULL);
}

/* The program may end this wait, since nobody has the group yet. */
static int wait_for_hello(struct embeng_group *g)
{
	const bool allowed = ask_allow(true);
	int ret;

	do {
		ret = embeng_group_wait(g, 0, ASK_NS, NULL);
		if (ret == -ETIME && ask_program())
			ret = fail(-EINTR, "embeng_group_open: the program ended the call when it "
					   "was asked (embeng_ask())");
	} while (ret == -ETIME);
	ask_allow(allowed);
	return ret;
}

/* The first exchange: all ranks are there, and know each other's name. */
static int say_hello(struct embeng_group *g)
{
	struct embeng_bytes *bytes = calloc(2 * (size_t)g->ranks, sizeof(*bytes));
	struct embeng_exchange x = EMBENG_INIT(embeng_exchange, .phase = "hello", .send = bytes);
	int ret = bytes ? 0 : fail(-ENOMEM, "embeng_group_open: there is no memory for names");

	for (uint32_t rank = 0; !ret && rank < g->ranks; rank++)
		bytes[rank] = (struct embeng_bytes){g->transport.name, strlen(g->transport.name)};
	ret = ret ? ret : embeng_group_begin(g, &x, NULL);
	ret = ret ? ret : wait_for_hello(g);
	ret = ret ? ret : embeng_group_end(g, x.channel, bytes + g->ranks, NULL);
	pthread_mutex_lock(&g->lock);
	for (uint32_t rank = 0; !ret && rank < g->ranks; rank++) {
		const struct embeng_bytes *name = &bytes[g->ranks + rank];

		memcpy(g->names[rank], name->data,
		       name->bytes < EMBENG_HOST_TEXT ? name->bytes : EMBENG_HOST_TEXT - 1);
	}
	pthread_mutex_unlock(&g->lock);
	free(bytes);
	return ret;
}

int embeng_group_open(const struct embeng_transport *transport,
		      const struct embeng_group_options *options, struct embeng_group **out,
		      struct embeng_error *error)
{
	struct embeng_transport t;
	struct embeng_group *g = NULL;
	int ret = check_transport(transport, &t);

	if (ret)
		return give_group_error(ret, error);
	ret = out ? make_group(&t, options, &g) : fail(-EINVAL, "embeng_group_open: out is NULL");
	if (!ret) {
		ret = start_service(g);
		if (!ret) {
			ret = say_hello(g);
			if (ret)
				stop_service(g);
		}
		if (ret)
			free_group(g);
	}
	if (ret)
		t.close(t.self);
	else
		*out = g;
	return give_group_error(ret, error);
}

void embeng_group_close(struct embeng_group *g)
{
	if (!g || g->generation != fork_generation())
		return;
	stop_service(g);
	g->transport.close(g->transport.self);
	free_group(g);
}

uint32_t embeng_group_rank(const struct embeng_group *g)
{
	return g ? g->rank : 0;
}

uint32_t embeng_group_ranks(const struct embeng_group *g)
{
	return g ? g->ranks : 0;
}

const char *embeng_group_host(const struct embeng_group *g, uint32_t rank)
{
	return rank < embeng_group_ranks(g) ? g->names[rank] : "";
}

static int check_exchange(const struct embeng_exchange *from, struct embeng_exchange *x)
{
	int ret = config_take(x, from, sizeof(*x), "embeng_exchange");

	if (ret)
		return ret;
	if (!x->phase || !*x->phase || strlen(x->phase) >= EMBENG_PHASE_TEXT)
		return fail(-EINVAL, "embeng_group_begin: the phase needs a name of 1 to %d bytes",
			    EMBENG_PHASE_TEXT - 1);
	if (x->channel >= EMBENG_GROUP_CHANNELS)
		return fail(-ERANGE, "embeng_group_begin: channel %" PRIu32 " must be below %d",
			    x->channel, EMBENG_GROUP_CHANNELS);
	if (x->timeout_ns > LONGEST_NS)
		x->timeout_ns = LONGEST_NS;
	if (x->status > 0 || (x->status && !x->text))
		return fail(-EINVAL,
			    "embeng_group_begin: status %d must be 0, or a negative errno "
			    "with a text",
			    x->status);
	return 0;
}

/* The first call after the failure returns it as the call of an exchange in flight does. */
static int refuse_dead_group(struct embeng_group *g)
{
	const bool told = g->told;

	if (!g->dead)
		return 0;
	g->told = true;
	return told ? fail(-ESHUTDOWN, "the group of hosts is dead since: %.480s", g->cause)
		    : fail(g->dead, "%s", g->cause);
}

int embeng_group_begin(struct embeng_group *g, const struct embeng_exchange *from,
		       struct embeng_error *error)
{
	struct embeng_exchange x;
	struct flight *f;
	int ret = g ? check_exchange(from, &x) : fail(-EINVAL, "embeng_group_begin: g is NULL");

	if (!ret && g->generation != fork_generation())
		ret = fail(-ENOTSUP, "embeng_group_begin: the group is that of the parent process");
	if (ret)
		return give_group_error(ret, error);
	pthread_mutex_lock(&g->lock);
	f = &g->flights[x.channel];
	ret = refuse_dead_group(g);
	if (!ret && f->state != FLIGHT_IDLE)
		ret = fail(-EBUSY,
			   "embeng_group_begin: channel %" PRIu32
			   " has an exchange, %s of step %" PRIu64
			   "; call embeng_group_end() first",
			   x.channel, f->header.phase, f->header.step);
	ret = ret ? ret : flight_load(g, f, &x);
	pthread_cond_signal(&g->work);
	pthread_mutex_unlock(&g->lock);
	if (!ret && g->transport.wake)
		g->transport.wake(g->transport.self);
	return give_group_error(ret, error);
}

/* Takes the result of an exchange that has ended. */
static int take_flight(struct embeng_group *g, struct flight *f, struct embeng_bytes *received)
{
	f->state = FLIGHT_IDLE;
	f->serial++;
	g->told |= g->dead && f->code;
	if (f->code)
		return fail(f->code, "%s", f->text);
	for (uint32_t rank = 0; received && rank < g->ranks; rank++)
		received[rank] = rank == g->rank
					 ? f->own
					 : (struct embeng_bytes){f->peers[rank].body,
								 f->peers[rank].header.bytes};
	return 0;
}

/* All calls about an exchange that was begun ask for this. */
static int check_channel(const struct embeng_group *g, uint32_t channel, const char *call)
{
	if (!g || channel >= EMBENG_GROUP_CHANNELS)
		return fail(-EINVAL, "%s: a group and a channel below %d must be given", call,
			    EMBENG_GROUP_CHANNELS);
	if (g->generation != fork_generation())
		return fail(-ENOTSUP, "%s: the group is that of the parent process", call);
	return 0;
}

static int refuse_idle(const char *call, uint32_t channel)
{
	return fail(-EINVAL,
		    "%s: channel %" PRIu32 " has no exchange; call embeng_group_begin() first",
		    call, channel);
}

/* Called with the lock. Return: 0, -ETIME. */
static int wait_flight(struct embeng_group *g, const struct flight *f, int64_t timeout_ns)
{
	const uint64_t now = now_ns();
	const uint64_t end = timeout_ns < 0 ? UINT64_MAX / 2 : now + (uint64_t)timeout_ns;
	const struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
	int ret = 0;

	while (f->state != FLIGHT_DONE && ret != ETIMEDOUT)
		ret = pthread_cond_timedwait(&g->changed, &g->lock, &until);
	return f->state == FLIGHT_DONE ? 0 : -ETIME;
}

int embeng_group_wait(struct embeng_group *g, uint32_t channel, int64_t timeout_ns,
		      struct embeng_error *error)
{
	int ret = check_channel(g, channel, "embeng_group_wait");
	const struct flight *f;

	if (ret)
		return give_group_error(ret, error);
	f = &g->flights[channel];
	pthread_mutex_lock(&g->lock);
	if (f->state == FLIGHT_IDLE)
		ret = refuse_idle("embeng_group_wait", channel);
	else if (wait_flight(g, f, timeout_ns))
		ret = fail(-ETIME,
			   "embeng_group_wait: channel %" PRIu32 ": %s of step %" PRIu64 " goes on",
			   channel, f->header.phase, f->header.step);
	pthread_mutex_unlock(&g->lock);
	return give_group_error(ret, error);
}

int embeng_group_end(struct embeng_group *g, uint32_t channel, struct embeng_bytes *received,
		     struct embeng_error *error)
{
	int ret = check_channel(g, channel, "embeng_group_end");
	struct flight *f;

	if (ret)
		return give_group_error(ret, error);
	f = &g->flights[channel];
	pthread_mutex_lock(&g->lock);
	if (f->state == FLIGHT_IDLE) {
		ret = refuse_dead_group(g);
		ret = ret ? ret : refuse_idle("embeng_group_end", channel);
	} else {
		wait_flight(g, f, -1);
		ret = take_flight(g, f, received);
	}
	pthread_mutex_unlock(&g->lock);
	return give_group_error(ret, error);
}

int embeng_group_exchange(struct embeng_group *g, const struct embeng_exchange *x,
			  struct embeng_bytes *received, struct embeng_error *error)
{
	int ret = embeng_group_begin(g, x, error);

	return ret ? ret : embeng_group_end(g, x->channel, received, error);
}

int group_cause(struct embeng_group *g)
{
	int ret;

	pthread_mutex_lock(&g->lock);
	ret = g->dead ? fail(g->dead, "%s", g->cause) : 0;
	pthread_mutex_unlock(&g->lock);
	return ret;
}

int group_blame(struct embeng_group *g, int code)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);
	int ret;

	embeng_last_error(&error);
	pthread_mutex_lock(&g->lock);
	if (!g->blame) {
		g->blame = code;
		snprintf(g->blame_text, sizeof(g->blame_text), "%s", error.text);
	}
	pthread_cond_signal(&g->work);
	pthread_mutex_unlock(&g->lock);
	if (g->transport.wake)
		g->transport.wake(g->transport.self);
	pthread_mutex_lock(&g->lock);
	while (!g->dead)
		pthread_cond_wait(&g->changed, &g->lock);
	g->told = true;
	ret = fail(g->dead, "%s", g->cause);
	pthread_mutex_unlock(&g->lock);
	return ret;
}
