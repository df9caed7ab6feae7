// SPDX-License-Identifier: MIT
/*
 * Asks hosts whether they are alive, while an exchange waits for them longer than the group's deadline.
 * Such an exchange is one that a host begins although the others may compute for hours before they do.
 * A host that has died in the meantime would be waited for in vain. It is a file because it is neither
 * a part of an exchange nor of what follows a failure.
 *
 * The service thread calls, with the group's lock.
 */
#include "base/clock.h"
#include "base/error.h"
#include "group.h"

/* Two questions fit into the deadline, so that a host is found within it. */
static uint64_t pause_of(const struct embeng_group *g)
{
	return g->deadline_ns / 2;
}

/* The exchange may wait longer than the group's deadline, and does so for somebody. */
static bool is_patient(const struct embeng_group *g, const struct flight *f)
{
	return f->state == FLIGHT_RUNS && f->deadline - f->began > g->deadline_ns;
}

uint64_t pulse_last(const struct embeng_group *g, const struct flight *f)
{
	uint64_t waited[WIRE_RANK_WORDS] = {0}, last = UINT64_MAX;

	if (!is_patient(g, f))
		return f->began;
	flight_waiting(g, f, waited, waited);
	for (uint32_t rank = 0; rank < g->ranks; rank++)
		if (rank_in(waited, rank) && g->controls[rank].heard_ns < last)
			last = g->controls[rank].heard_ns;
	return last != UINT64_MAX && last > f->began ? last : f->began;
}

static void ask_hosts(struct embeng_group *g, struct flight *f, uint64_t now)
{
	uint64_t waited[WIRE_RANK_WORDS] = {0};

	f->asked = now;
	flight_waiting(g, f, waited, waited);
	trial_send(g, waited, WIRE_ASK);
}

void pulse_advance(struct embeng_group *g)
{
	const uint64_t now = now_ns();

	for (uint32_t i = 0; i < EMBENG_GROUP_CHANNELS && !g->trial.on && !g->dead; i++) {
		struct flight *f = &g->flights[i];

		if (!is_patient(g, f))
			continue;
		if (now - pulse_last(g, f) >= g->deadline_ns)
			trial_begin(g, fail(-ETIME, "a host is silent"), f);
		else if (now - (f->asked > f->began ? f->asked : f->began) >= pause_of(g))
			ask_hosts(g, f, now);
	}
}

void pulse_hear(struct embeng_group *g, uint32_t rank, bool asked)
{
	uint64_t asker[WIRE_RANK_WORDS] = {0};

	g->controls[rank].heard_ns = now_ns();
	if (!asked)
		return;
	rank_add(asker, rank);
	trial_send(g, asker, WIRE_ALIVE);
}
