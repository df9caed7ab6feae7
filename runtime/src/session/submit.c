// SPDX-License-Identifier: MIT
/*
 * Submitting a command: it waits for room in its ring, and an update waits until no reader has
 * the gate (gate.c). e->lock is held, but not while waiting.
 */
#include "session.h"
#include "wait.h"

static bool has_room(struct embeng *e, void *arg)
{
	struct ring *ring = arg;

	(void)e;
	return ring->in_flight < ring->queue.layout.sq_entries;
}

static bool gate_open(struct embeng *e, void *arg)
{
	(void)arg;
	return !e->gate;
}

/* 0 when it may be submitted, as long as nobody lets go of the lock. */
static int may_submit(struct embeng *e, const struct embeng_cmd *cmd)
{
	int ret = 0;

	if (cmd->opcode == EMBENG_OP_UPDATE) {
		e->shut_out++;
		ret = wait_until(e, gate_open, NULL, deadline_never());
		e->shut_out--;
	}
	/* The ring of a lost device takes commands that nobody should run. */
	return ret ? ret : session_lost(e);
}

int submit(struct embeng *e, struct ring *ring, struct embeng_cmd *cmd, struct request *request)
{
	int ret;

	while (!(ret = may_submit(e, cmd))) {
		ret = ring_submit(ring, cmd, request);
		if (ret != -EAGAIN)
			return ret;
		/* Full by commands in flight or by ones not fetched yet: both end by themselves. */
		ret = wait_until(e, has_room, ring, deadline_never());
		if (ret)
			return ret;
		pthread_mutex_unlock(&e->lock);
		e->device->ops->run(e->device, false);
		pthread_mutex_lock(&e->lock);
	}
	return ret;
}
