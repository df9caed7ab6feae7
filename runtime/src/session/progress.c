// SPDX-License-Identifier: MIT
/*
 * How far the steps have come: handed in, applied, withdrawn; and what a step still waits for, in
 * words. All who wait for a step, or who say why it does not end, ask here. e->lock is held.
 */
#include <inttypes.h>
#include <stdio.h>

#include "session.h"

uint64_t session_complete(const struct embeng *e)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < e->replica_count; i++)
		if (e->replicas[i].started && e->replicas[i].handed_in < least)
			least = e->replicas[i].handed_in;
	return least == UINT64_MAX ? 0 : least;
}

uint64_t session_applied(const struct embeng *e)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < e->replica_count; i++)
		if (e->replicas[i].started && e->replicas[i].applied < least)
			least = e->replicas[i].applied;
	return least == UINT64_MAX ? 0 : least;
}

int session_withdrawn(const struct slot *slot)
{
	if (!slot->withdrawn)
		return 0;
	return error_set(-EPROTO, EMBENG_STATUS_STEP_ORDER,
			 "step %" PRIu64 " of replica %u: the lookup of a step before it failed; "
			 "enqueue again what was enqueued since", slot->step, slot->replica);
}

static bool say_part(const struct embeng *e, uint64_t step, bool lookup, char *text, size_t size)
{
	for (uint32_t i = 0; i < e->replica_count; i++) {
		const struct replica *r = &e->replicas[i];

		if (!r->started || (lookup ? r->looked_up : r->handed_in) >= step)
			continue;
		snprintf(text, size, "step %" PRIu64 ": %s of replica %u", step,
			 lookup ? "lookup" : "gradients", i);
		return true;
	}
	return false;
}

bool reported_part(const struct ring *ring, char *text, size_t size)
{
	struct embeng_queue_report report;

	if (!ring_report(ring, &report) || report.state != EMBENG_QUEUE_BLOCKED ||
	    (report.wait != EMBENG_WAIT_LOOKUP && report.wait != EMBENG_WAIT_UPDATE))
		return false;
	snprintf(text, size, "step %" PRIu64 ": %s of replica %u", (uint64_t)report.step,
		 report.wait == EMBENG_WAIT_LOOKUP ? "lookup" : "gradients", report.replica);
	return true;
}

void missing_part(struct embeng *e, uint64_t step, char *text, size_t size)
{
	struct ring *ring;

	/* Only the device knows the replicas of another process. */
	for (uint32_t i = 0; e->shared && (ring = session_ring(e, i)); i++)
		if (reported_part(ring, text, size))
			return;
	if (!say_part(e, step, true, text, size) && !say_part(e, step, false, text, size))
		snprintf(text, size, "step %" PRIu64 ": its update", step);
}
