// SPDX-License-Identifier: MIT
/*
 * Fences between the library and other users of sync_files: one that says when a lookup's
 * activations are there, and those that a step's gradients wait for. Only validated queues have
 * them.
 *
 * Descriptors that the program gets belong to it; slot->ready is the session's. Called with e->lock
 * held, but for fences_check().
 */
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "session.h"
#include "wait.h"

static int check_path(const struct embeng *e, const struct ring *ring)
{
	if (ring->queue.validator)
		return 0;
	return fail(-ENOTSUP,
		    "%s: fences are given by the kernel driver alone, for the queues that "
		    "it writes itself: open its device with path=validated",
		    e->device->info.name);
}

/* Behind the lookup, and behind those that were enqueued after it. */
static int submit_mark(struct embeng *e, struct ring *ring, int *file)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_NOP};
	struct device_fences fences = {.wants_out = true};
	struct request request = {.fences = &fences};
	int ret = submit(e, ring, &cmd, &request);

	if (ret)
		return ret;
	ring_abandon(ring, &request);
	if (fences.out < 0)
		return fences.out;
	*file = fences.out;
	return 0;
}

static int await_and_signal(struct embeng *e, struct slot *slot, struct deadline deadline,
			    int *file)
{
	int ret = session_await(e, slot, deadline);

	if (ret)
		return ret;
	ret = e->device->ops->fence_signalled(e->device);
	if (ret < 0)
		return ret;
	*file = ret;
	return 0;
}

int fence_of_lookup(struct embeng *e, struct slot *slot, struct deadline deadline, int *file)
{
	struct replica *r = &e->replicas[slot->replica];
	struct ring *ring = slot->mode == EMBENG_TRAIN ? &r->input : &r->inference;
	int ret = check_path(e, ring), given;

	if (ret)
		return ret;
	session_reap(e);
	if (slot->lookup.done)
		return await_and_signal(e, slot, deadline, file);
	ret = submit_mark(e, ring, &given);
	/* No fence may depend on what the program still has to do, but the program may wait. */
	if (ret == -EBUSY)
		return await_and_signal(e, slot, deadline, file);
	if (ret)
		return ret;
	slot->ready = fcntl(given, F_DUPFD_CLOEXEC, 0);
	if (slot->ready < 0) {
		ret = fail(-errno, "no descriptor for the fence of a lookup");
		close(given);
		return ret;
	}
	*file = given;
	return 0;
}

int fences_check(const struct embeng *e, const struct slot *slot, const struct embeng_gradients *g)
{
	if (!g->fence_count)
		return 0;
	if (!g->fences || g->fence_count > EMBENG_FENCES_MAX)
		return fail(-EINVAL, "step %" PRIu64 ": %zu fences%s; there may be up to %u",
			    slot->step, g->fence_count, g->fences ? "" : ", none given",
			    EMBENG_FENCES_MAX);
	if (e->model->engine.pipelining)
		return fail(-ENOTSUP,
			    "step %" PRIu64 ": with pipelining gradients cannot wait for "
			    "fences; wait for them with poll() first",
			    slot->step);
	return check_path(e, &e->replicas[slot->replica].gradient);
}

/* The engine refuses an UPDATE whose LOOKUP is not done when it gets there. */
static size_t gather_fences(const struct slot *slot, const struct embeng_gradients *g, int *files)
{
	size_t count = 0;

	if (slot->ready >= 0 && !slot->lookup.done)
		files[count++] = slot->ready;
	for (size_t i = 0; i < g->fence_count; i++)
		files[count++] = g->fences[i];
	return count;
}

int fences_submit(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
		  struct deadline deadline, struct embeng_cmd *cmd)
{
	int files[EMBENG_FENCES_MAX + 1], ret = 0;
	struct device_fences fences = {.in = files};

	if (slot->ready >= 0 && (slot->lookup.done || !g->fence_count))
		ret = session_await(e, slot, deadline);
	if (ret)
		return ret;
	if (g->fence_count)
		fences.in_count = gather_fences(slot, g, files);
	slot->update.fences = fences.in_count ? &fences : NULL;
	ret = submit(e, &e->replicas[slot->replica].gradient, cmd, &slot->update);
	slot->update.fences = NULL;
	if (ret)
		return ret;
	fence_forget(slot);
	if (fences.in_count && e->fenced < slot->step)
		e->fenced = slot->step;
	return 0;
}
