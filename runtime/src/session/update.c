// SPDX-License-Identifier: MIT
/*
 * Updates beside the order of look-up and gradients: embeng_update() gives the rows of a batch
 * gradients without an earlier lookup, and embeng_discard() takes a view back that no gradients
 * come for. Both are a step in the engine's count, of which the second is none for the optimizers.
 *
 * The slot of an update is taken here and freed when its UPDATE is done, as that of any training
 * batch. e->lock is taken inside, and let go of while arrays are copied and while waiting.
 */
#include <inttypes.h>

#include "session.h"
#include "wait.h"

bool update_has_no_view(struct embeng *e, void *arg)
{
	const uint32_t *replica = arg;
	const struct embeng_replica_steps *steps = &e->steps[*replica];

	return steps->updated == steps->accepted;
}

int update_say_older(const struct embeng *e, uint32_t replica, int ret)
{
	return fail(ret,
		    "embeng_update: replica %u still has to be given gradients of step %" PRIu64
		    ", which it looked up before; apply or discard them first%s",
		    replica, (uint64_t)e->steps[replica].updated + 1,
		    ret == -EDEADLK ? "" : " (deadline passed)");
}

/* The engine takes the UPDATEs of a replica in the order of its LOOKUPs. */
static int await_older(struct embeng *e, uint32_t replica, struct deadline deadline)
{
	int ret = wait_until(e, update_has_no_view, &replica, deadline);

	return wait_is_over(ret) ? update_say_older(e, replica, ret) : ret;
}

/* All that can be refused is, before the step is taken: a batch that fails leaves no trace. */
static int prepare_update(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
			  const struct embeng_gradients *g, struct embeng_mem *descriptor)
{
	int ret = batch_check(b, e->outputs, slot->resolved);

	ret = ret ? ret : describe_lookup(e, slot, b, descriptor);
	if (ret)
		return ret;
	pthread_mutex_unlock(&e->lock);
	ret = update_make(e, slot, g);
	pthread_mutex_lock(&e->lock);
	return ret ? ret : step_agree(e, slot);
}

/* The sentence of why, @failed, stays. */
static void discard_quietly(struct embeng *e, struct slot *slot, int failed)
{
	struct embeng_error why = {.size = sizeof(why)};

	embeng_last_error(&why);
	update_discard(e, slot, deadline_never());
	error_set(failed, why.status, "%s", why.text);
}

static void free_unlooked(struct embeng *e, struct slot *slot)
{
	unpin_all(&slot->gradient_pins);
	step_take_back(e, slot);
	slot->state = SLOT_FREE;
}

/* The engine takes no UPDATE before its LOOKUP is done, which waits for nothing here. */
static int give_looked_up(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
			  struct deadline deadline)
{
	int ret = wait_done(e, &slot->lookup, deadline_never());

	ret = ret ? ret : session_aborted(e, &slot->lookup);
	if (!ret && slot->lookup.status)
		ret = feature_command_error(e, "embeng_update", &slot->lookup.answer);
	if (ret) {
		free_unlooked(e, slot);
		return ret;
	}
	ret = update_give(e, slot, g, deadline);
	/* The step is taken: without an update it would be in the way of all later ones. */
	if (ret && slot->state == SLOT_IDS)
		discard_quietly(e, slot, ret);
	return ret;
}

static int update_locked(struct embeng *e, const struct embeng_batch *b,
			 const struct embeng_gradients *g, struct deadline deadline)
{
	struct embeng_mem descriptor;
	struct slot *slot;
	int ret = session_failed(e);

	if (!ret && !e->replicas[b->replica].started)
		ret = session_start_replica(e, b->replica);
	ret = ret ? ret : await_older(e, b->replica, deadline);
	if (ret)
		return ret;
	slot = slot_take(e, b);
	if (!slot)
		return -EBUSY;
	slot->ids_only = true;
	ret = slot_await_room(e, slot, deadline);
	ret = ret ? ret : prepare_update(e, slot, b, g, &descriptor);
	ret = ret ? ret : slot_look_up(e, slot, b, &descriptor, 0);
	unpin_all(&slot->input_pins);
	if (ret) {
		free_unlooked(e, slot);
		return ret;
	}
	slot->state = SLOT_IDS;
	return give_looked_up(e, slot, g, deadline);
}

int embeng_update(struct embeng *e, struct embeng_batch *b, const struct embeng_gradients *g,
		  int64_t timeout_ns)
{
	int ret = session_check_batch(e, b, "embeng_update");

	if (ret)
		return ret;
	if (b->mode != EMBENG_TRAIN)
		return fail(-EINVAL, "embeng_update: the batch is for inference; make one with "
				     "EMBENG_TRAIN");
	if (!g || g->size < sizeof(*g))
		return fail(-EINVAL, "embeng_update: gradients must be given, with their size");
	if (g->replica != b->replica)
		return fail(-EINVAL,
			    "embeng_update: the batch is of replica %u, the gradients are of "
			    "replica %u",
			    b->replica, g->replica);
	if (e->calls)
		return e->calls->update(e, b, g, timeout_ns);
	pthread_mutex_lock(&e->lock);
	ret = update_locked(e, b, g, deadline_in(timeout_ns));
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int embeng_discard(struct embeng *e, uint32_t replica, int64_t timeout_ns)
{
	int ret = session_check_replica(e, replica, "embeng_discard");
	struct slot *slot;

	if (ret)
		return ret;
	if (e->calls)
		return e->calls->discard(e, replica);
	pthread_mutex_lock(&e->lock);
	slot = session_view_or_fail(e, replica);
	ret = slot ? update_discard(e, slot, deadline_in(timeout_ns)) : -EPROTO;
	pthread_mutex_unlock(&e->lock);
	return ret;
}
