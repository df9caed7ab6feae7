// SPDX-License-Identifier: MIT
/*
 * Says how far the steps have come (handed in, applied, withdrawn), and in words what a step still
 * waits for. Functions that wait for a step, or that report why it does not end, ask here. e->lock
 * is held.
 */
#include <inttypes.h>
#include <stdio.h>

#include "session.h"

struct embeng_steps session_steps(const struct embeng *e)
{
	return (struct embeng_steps){
		.replicas = e->steps,
		.replica_count = e->replica_count,
		.depth = e->depth,
		.applied = session_applied(e),
		.pipelining = e->model->engine.pipelining,
	};
}

uint64_t session_complete(const struct embeng *e)
{
	struct embeng_steps steps = session_steps(e);
	uint64_t complete = embeng_steps_complete(&steps, UINT64_MAX);

	return complete == UINT64_MAX ? 0 : complete;
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
			 "enqueue again what was enqueued since",
			 slot->step, slot->replica);
}

static bool say_wait(uint32_t what, uint32_t replica, uint64_t step, char *text, size_t size)
{
	if (what != EMBENG_WAIT_LOOKUP && what != EMBENG_WAIT_UPDATE)
		return false;
	snprintf(text, size, "step %" PRIu64 ": %s of replica %u", step,
		 what == EMBENG_WAIT_LOOKUP ? "lookup" : "gradients", replica);
	return true;
}

bool reported_part(const struct ring *ring, char *text, size_t size)
{
	struct embeng_queue_report report;

	return ring_report(ring, &report) && report.state == EMBENG_QUEUE_BLOCKED &&
	       say_wait(report.wait, report.replica, report.step, text, size);
}

void waited_part(struct embeng *e, struct embeng_step_answer wait, char *text, size_t size)
{
	struct ring *ring;

	/* Only the device knows the replicas of another process. */
	for (uint32_t i = 0; e->shared && (ring = session_ring(e, i)); i++)
		if (reported_part(ring, text, size))
			return;
	if (!say_wait(wait.what, wait.replica, wait.step, text, size))
		snprintf(text, size, "step %" PRIu64 ": its update", session_applied(e) + 1);
}

struct slot *missing_view(struct embeng *e)
{
	struct embeng_steps steps = session_steps(e);
	struct embeng_step_answer answer = embeng_steps_missing(&steps);
	struct slot *view;

	if (answer.what != EMBENG_WAIT_UPDATE)
		return NULL;
	view = session_view(e, answer.replica);
	return view && view->step == answer.step ? view : NULL;
}

void missing_part(struct embeng *e, char *text, size_t size)
{
	struct embeng_steps steps = session_steps(e);

	waited_part(e, embeng_steps_missing(&steps), text, size);
}
