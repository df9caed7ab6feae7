// SPDX-License-Identifier: MIT
/*
 * The service thread of a group. It alone uses the transport, so that messages move while the
 * program computes, and peers are answered whether or not the program is in a call.
 *
 * The thread holds the group's lock but while it waits. It ends when the group closes, once the
 * last notices are sent, or soon after if they cannot be.
 */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "group.h"

#define US 1000ull
#define MS 1000000ull
#define IDLE_NS (5 * MS) /* between two looks at a transport without wait(), with no exchange */

static void advance_flight(struct embeng_group *g, struct flight *f)
{
	int ret = 0;

	if (f->state == FLIGHT_QUEUED)
		ret = flight_start(g, f);
	if (!ret && f->state == FLIGHT_RUNS)
		ret = flight_advance(g, f);
	if (!ret && f->state == FLIGHT_RUNS && now_ns() >= f->deadline)
		ret = fail(-ETIME, "the deadline passed");
	if (ret)
		trial_begin(g, ret, f);
}

/* Time until something has to be done even if no message moves. */
static uint64_t find_pause(const struct embeng_group *g)
{
	uint64_t now = now_ns(), least = g->trial.on || g->stop || g->notices ? 10 * MS : 100 * MS;

	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS && !g->dead; i++) {
		const struct flight *f = &g->flights[i];
		const uint64_t left = f->deadline > now ? f->deadline - now : 0;

		if (f->state == FLIGHT_RUNS && left < least)
			least = left;
	}
	return least > 10 * US ? least : 10 * US;
}

static bool group_has_work(const struct embeng_group *g)
{
	bool any = g->trial.on || g->notices;

	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS; i++)
		any |= g->flights[i].state == FLIGHT_QUEUED || g->flights[i].state == FLIGHT_RUNS;
	return any;
}

/* Where messages must be asked for: often at first, then less and less, up to a millisecond. */
static void pause_polling(struct embeng_group *g, uint32_t *turns)
{
	struct timespec until;
	uint64_t ns, at;

	*turns = g->moved ? 0 : *turns + 1;
	if (*turns < 64 && group_has_work(g)) {
		pthread_mutex_unlock(&g->lock);
		sched_yield();
		pthread_mutex_lock(&g->lock);
		return;
	}
	ns = *turns * 2 * US < MS ? *turns * 2 * US : MS;
	at = now_ns() + (group_has_work(g) ? ns : IDLE_NS);
	until = (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
	pthread_cond_timedwait(&g->work, &g->lock, &until);
}

static void pause_service(struct embeng_group *g, uint32_t *turns)
{
	const uint64_t ns = find_pause(g);

	if (!g->transport.wait) {
		pause_polling(g, turns);
	} else if (!g->moved) {
		pthread_mutex_unlock(&g->lock);
		g->transport.wait(g->transport.self, ns);
		pthread_mutex_lock(&g->lock);
	} else {
		/* However fast messages come, the program's calls have their turn. */
		pthread_mutex_unlock(&g->lock);
		sched_yield();
		pthread_mutex_lock(&g->lock);
	}
}

/*
 * Hosts that leave at the same time hear each other's farewell, so that no message is left behind
 * in the transport. One that stays on sends nothing to a host that has left.
 */
static bool has_parted(const struct embeng_group *g)
{
	return !g->notices && (g->dead || trial_all_left(g));
}

void *service_run(void *group)
{
	struct embeng_group *g = group;
	uint64_t stopped = 0;
	uint32_t turns = 0;

	pthread_mutex_lock(&g->lock);
	for (;;) {
		g->moved = false;
		for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS && !g->dead && !g->trial.on; i++)
			advance_flight(g, &g->flights[i]);
		if (g->blame && !g->trial.on)
			trial_begin(g, fail(g->blame, "%s", g->blame_text), NULL);
		trial_advance(g);
		pulse_advance(g);
		if (g->stop && !stopped) {
			stopped = now_ns();
			if (!g->dead)
				trial_say_bye(g);
		}
		if (stopped && (has_parted(g) || now_ns() - stopped > FAREWELL_NS))
			break;
		pause_service(g, &turns);
	}
	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS; i++)
		flight_clear(g, &g->flights[i]);
	trial_clear(g);
	pthread_mutex_unlock(&g->lock);
	return NULL;
}
