// SPDX-License-Identifier: MIT
/*
 * Waiting until a lookup is done. Dequeue, release and fences wait so, each for one slot. e->lock
 * is held, but not while waiting.
 */
#include "session.h"
#include "wait.h"

/* Says what this lookup waits for, from the device's report or else from the counts of steps. */
static int report_late(struct embeng *e, const struct slot *slot, int late)
{
	struct replica *r = &e->replicas[slot->replica];
	char missing[128];

	if (slot->mode != EMBENG_TRAIN || !reported_part(&r->input, missing, sizeof(missing)))
		missing_part(e, missing, sizeof(missing));
	return fail(late, "replica %u: %s; missing is %s%s", slot->replica,
		    late == -ETIME ? "deadline passed" : "the lookup would wait for ever", missing,
		    wait_advice(late));
}

/* Behind an update that failed no lookup is ever done. */
static bool is_decided(struct embeng *e, void *arg)
{
	const struct request *lookup = arg;

	return lookup->done || e->failed;
}

int session_await(struct embeng *e, struct slot *slot, struct deadline deadline)
{
	/* Small work was done, and seen to be, when it was given. Waiting arms the descriptor. */
	bool seen = slot->lookup.done && !e->wants_fd;
	int ret = seen ? 0 : wait_until(e, is_decided, &slot->lookup, deadline);

	if (!ret && !slot->lookup.done)
		return session_failed(e);
	if (wait_is_over(ret))
		return report_late(e, slot, ret);
	if (ret || !slot->lookup.status)
		return ret;
	fence_forget(slot);
	slot->state = SLOT_FREE;
	ret = session_aborted(e, &slot->lookup);
	ret = ret ? ret : session_withdrawn(slot);
	return ret ? ret : feature_command_error(e, "lookup", &slot->lookup.answer);
}
