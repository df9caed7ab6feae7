// SPDX-License-Identifier: MIT
/*
 * The open rings of a session, and the completions that are in them. Waiting, submitting and
 * freeing look at all rings; making and ending them is session.c. e->lock is held.
 */
#include "session.h"

struct ring *session_ring(struct embeng *e, uint32_t index)
{
	return index < e->ring_count ? e->rings[index] : NULL;
}

static bool reap_all_rings(struct embeng *e)
{
	struct ring *ring;
	bool any = false;

	for (uint32_t i = 0; (ring = session_ring(e, i)); i++)
		any |= ring_reap(ring);
	return any;
}

void session_reap(struct embeng *e)
{
	bool any = reap_all_rings(e);
	struct ring *ring;

	if (!e->wants_fd)
		return;
	for (uint32_t i = 0; (ring = session_ring(e, i)); i++)
		ring_arm(ring);
	embeng_arm_then_recheck();
	/* Another thread may be polling for what was read here. */
	if (reap_all_rings(e) || any)
		e->device->ops->event_signal(e->device);
}
