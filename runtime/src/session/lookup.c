// SPDX-License-Identifier: MIT
/*
 * Looks a batch up in one call, into memory of the caller: for inference, by any number of threads
 * at once. It is an inference batch that is never dequeued.
 *
 * The slot is taken and freed here. e->lock is held inside, but not while waiting or copying; calls
 * on other threads have slots of their own.
 */
#include "session.h"
#include "wait.h"

/* Whether a slot is free, or none will be: the program has them all. */
static bool has_slot(struct embeng *e, void *arg)
{
	const struct replica *r = arg;
	bool held = true;

	for (uint32_t i = 0; i < e->slot_count; i++) {
		if (r->serving[i].state == SLOT_FREE)
			return true;
		held &= r->serving[i].state != SLOT_LOOKUP;
	}
	return held;
}

static int run_lookup(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
		      struct deadline deadline)
{
	struct embeng_mem descriptor;
	uint64_t after = 0;
	int ret = batch_check(b, e->outputs, slot->resolved);

	ret = ret ? ret : describe_lookup(e, slot, b, &descriptor);
	ret = ret ? ret : gate_give_way(e);
	ret = ret ? ret : gate_enter(e, deadline, "embeng_lookup", &after);
	ret = ret ? ret : slot_look_up(e, slot, b, &descriptor, after);
	ret = ret ? ret : wait_done(e, &slot->lookup, deadline_never());
	ret = ret ? ret : session_aborted(e, &slot->lookup);
	if (!ret && slot->lookup.status)
		ret = feature_command_error(e, "embeng_lookup", &slot->lookup.answer);
	if (ret)
		return ret;
	pthread_mutex_unlock(&e->lock);
	outputs_copy(e, slot, b);
	pthread_mutex_lock(&e->lock);
	return 0;
}

static int lookup_locked(struct embeng *e, const struct embeng_batch *b,
			 const struct embeng_output *outputs, struct deadline deadline)
{
	struct replica *r = &e->replicas[b->replica];
	struct slot *slot;
	int ret = session_failed(e);

	if (!ret && !r->started)
		ret = session_start_replica(e, b->replica);
	ret = ret ? ret : wait_until(e, has_slot, r, deadline_never());
	if (ret)
		return ret;
	slot = slot_take(e, b);
	if (!slot)
		return -EBUSY;
	slot->outputs = outputs;
	ret = run_lookup(e, slot, b, deadline);
	unpin_all(&slot->input_pins);
	unpin_all(&slot->gradient_pins);
	slot->state = SLOT_FREE;
	slot->outputs = NULL;
	if (!ret)
		e->counters.lookups++;
	e->device->ops->event_signal(e->device);
	return ret;
}

int embeng_lookup(struct embeng *e, struct embeng_batch *b, const struct embeng_output *outputs,
		  size_t count, int64_t timeout_ns)
{
	int ret = session_check_batch(e, b, "embeng_lookup");

	if (ret)
		return ret;
	if (b->mode != EMBENG_INFERENCE)
		return fail(-EINVAL, "embeng_lookup: the batch is for training; make one with "
				     "EMBENG_INFERENCE");
	if (count != e->model->feature_count || (count && !outputs))
		return fail(-EINVAL, "embeng_lookup: outputs of %zu features, the model has %zu",
			    outputs ? count : 0, e->model->feature_count);
	if (e->calls)
		return e->calls->lookup(e, b, outputs, timeout_ns);
	pthread_mutex_lock(&e->lock);
	ret = lookup_locked(e, b, outputs, deadline_in(timeout_ns));
	pthread_mutex_unlock(&e->lock);
	return ret;
}
