// SPDX-License-Identifier: MIT
/*
 * Gives the program the activations of the oldest batch of a replica, and takes the views of
 * inference batches back.
 *
 * A view shows memory of a slot and ends with embeng_apply_gradients() (training) or
 * embeng_release() (inference). e->lock is held inside, but not while waiting.
 */
#include <string.h>

#include "session.h"
#include "wait.h"

void slot_make_views(struct embeng *e, struct slot *slot)
{
	const struct embeng_model *m = e->model;

	for (size_t f = 0; f < m->feature_count; f++) {
		const struct output *o = &slot->resolved[f];
		struct embeng_view *v = &slot->views[f];

		v->data = (const float *)(slot->activations.data + slot->at[f]);
		v->rank = o->rank + 1;
		memcpy(v->shape, o->shape, o->rank * sizeof(*v->shape));
		v->shape[o->rank] = m->tables[m->features[f].table].dim;
	}
}

/* @fence: NULL: the activations are there on return. */
static int dequeue_locked(struct embeng *e, uint32_t replica, struct deadline deadline, int *fence,
			  struct slot **out)
{
	struct slot *slot = slot_oldest(e, replica, SLOT_ACCEPTED, true);
	int ret;

	if (!slot)
		return fail(-EPROTO, "replica %u: nothing is enqueued to dequeue", replica);
	/* Before the look, so that what completes after it makes the descriptor readable. */
	if (e->wants_fd)
		e->device->ops->fd_clear(e->device);
	if (fence)
		ret = fence_of_lookup(e, slot, deadline, fence);
	else
		ret = session_await(e, slot, deadline);
	if (ret)
		return ret;
	slot->state = SLOT_VIEW;
	slot->viewer = pthread_self();
	slot_make_views(e, slot);
	*out = slot;
	return 0;
}

int session_check_activations(const struct embeng_activations *activations)
{
	if (activations && activations->size >= sizeof(*activations))
		return 0;
	return fail(-EINVAL, "embeng_dequeue: activations must be given, with their size");
}

void session_show(const struct slot *slot, struct embeng_activations *activations)
{
	activations->replica = slot->replica;
	activations->mode = slot->mode;
	activations->step = slot->step;
	activations->count = slot->e->model->feature_count;
	activations->features = slot->views;
	activations->token = (void *)slot;
}

static int dequeue_slot(struct embeng *e, uint32_t replica, struct deadline deadline, int *fence,
			struct embeng_activations *activations)
{
	struct slot *slot = NULL;
	int ret = session_check_activations(activations);

	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	ret = dequeue_locked(e, replica, deadline, fence, &slot);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		session_show(slot, activations);
	return ret;
}

int embeng_dequeue(struct embeng *e, uint32_t replica, int64_t timeout_ns,
		   struct embeng_activations *activations)
{
	int ret = session_check_replica(e, replica, "embeng_dequeue");

	if (ret)
		return ret;
	return e->calls ? e->calls->dequeue(e, replica, timeout_ns, activations)
			: dequeue_slot(e, replica, deadline_in(timeout_ns), NULL, activations);
}

int embeng_dequeue_fence(struct embeng *e, uint32_t replica, int64_t timeout_ns,
			 struct embeng_activations *activations, int *fence)
{
	int ret = session_check_alone(e, "embeng_dequeue_fence");

	ret = ret ? ret : session_check_replica(e, replica, "embeng_dequeue_fence");
	if (!ret && !fence)
		ret = fail(-EINVAL, "embeng_dequeue_fence: no place for the descriptor given");
	return ret ? ret : dequeue_slot(e, replica, deadline_in(timeout_ns), fence, activations);
}

static struct slot *serving_view(struct embeng *e, const struct embeng_activations *a)
{
	struct replica *r;

	if (a->replica >= e->replica_count)
		return NULL;
	r = &e->replicas[a->replica];
	for (uint32_t i = 0; r->started && i < e->slot_count; i++)
		if (a->token == &r->serving[i] && r->serving[i].state == SLOT_VIEW)
			return &r->serving[i];
	return NULL;
}

/* A view that came with a fence may be given back while the engine still writes it. */
static int end_view(struct embeng *e, struct slot *slot)
{
	int ret = e->calls ? 0 : session_await(e, slot, deadline_never());

	if (ret)
		return ret;
	fence_forget(slot);
	slot->state = SLOT_FREE;
	return 0;
}

int embeng_release(struct embeng *e, struct embeng_activations *activations)
{
	int ret = session_check(e, "embeng_release");
	struct slot *slot;

	if (ret)
		return ret;
	if (!activations)
		return fail(-EINVAL, "embeng_release: no activations given");
	pthread_mutex_lock(&e->lock);
	slot = serving_view(e, activations);
	if (slot)
		ret = end_view(e, slot);
	/* A lookup that failed ends its view, too; only a lost device's are left. */
	if (slot && slot->state == SLOT_FREE)
		activations->token = NULL;
	pthread_mutex_unlock(&e->lock);
	if (!slot)
		return fail(-EPROTO, "embeng_release: this is no inference view, or it was "
				     "released; training views end with embeng_apply_gradients()");
	return ret;
}
