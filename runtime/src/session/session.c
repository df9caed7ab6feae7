// SPDX-License-Identifier: MIT
/*
 * Starts and stops a session: the queues and slots of each replica, and what all of them share. In
 * a shared context a replica starts with its first batch.
 *
 * Everything belongs to the handle until session_stop(). Starting and stopping a whole session is
 * done by one thread; the other functions are called with e->lock held, but for the two checks,
 * which look only at what is constant.
 */
#include "session.h"

#include <stdlib.h>

#include "base/list.h"

#define RING_LEAST 16u

/* The steps of a replica that this handle does not feed: ahead of all others. */
static const struct embeng_replica_steps not_fed = {
	.accepted = UINT64_MAX,
	.looked = UINT64_MAX,
	.updated = UINT64_MAX,
};

static uint32_t power_of_two(uint32_t least)
{
	uint32_t n = RING_LEAST;

	while (n < least)
		n *= 2;
	return n;
}

static int open_ring(struct embeng *e, struct ring *ring, enum embeng_queue_kind kind,
		     uint32_t replica)
{
	struct queue_config config = {
		.kind = kind,
		.replica = replica,
		.sq_entries = power_of_two(e->slot_count),
	};
	struct device_queue queue;
	int ret;

	/* Room for all completions of every command, so that no queue ever waits for us. */
	config.cq_entries = EMBENG_COMPLETIONS_MAX * config.sq_entries;
	ret = e->device->ops->queue_create(e->device, &config, &queue);
	if (ret)
		return ret;
	if (ring_open(ring, &queue)) {
		e->device->ops->queue_destroy(e->device, &queue);
		return fail(-ENOMEM, "no memory for a queue");
	}
	ring->kind = kind;
	ring->tracer = e->tracer;
	e->rings[e->ring_count++] = ring;
	return 0;
}

static void close_ring(struct embeng *e, struct ring *ring)
{
	if (!ring->requests)
		return;
	for (uint32_t i = 0; i < e->ring_count; i++) {
		if (e->rings[i] == ring) {
			e->rings[i] = e->rings[--e->ring_count];
			break;
		}
	}
	e->device->ops->queue_destroy(e->device, &ring->queue);
	ring_close(ring);
}

static void free_slots(const struct embeng *e, struct slot *slots)
{
	for (uint32_t i = 0; slots && i < e->slot_count; i++)
		slot_free(&slots[i]);
	free(slots);
}

/* Queues first, so that nothing in flight meets memory that was taken back. */
static void stop_replica(struct embeng *e, struct replica *r)
{
	close_ring(e, &r->input);
	close_ring(e, &r->inference);
	close_ring(e, &r->gradient);
	free_slots(e, r->training);
	free_slots(e, r->serving);
	*r = (struct replica){0};
}

static int start_slots(struct embeng *e, struct replica *r)
{
	int ret = 0;

	r->training = calloc(e->slot_count, sizeof(*r->training));
	r->serving = calloc(e->slot_count, sizeof(*r->serving));
	if (!r->training || !r->serving)
		return fail(-ENOMEM, "no memory for the steps in flight");
	for (uint32_t i = 0; !ret && i < e->slot_count; i++) {
		ret = slot_init(e, &r->training[i]);
		ret = ret ? ret : slot_init(e, &r->serving[i]);
	}
	return ret;
}

int session_start_replica(struct embeng *e, uint32_t index)
{
	struct replica *r = &e->replicas[index];
	int ret = start_slots(e, r);

	ret = ret ? ret : open_ring(e, &r->input, EMBENG_QUEUE_INPUT, index);
	ret = ret ? ret : open_ring(e, &r->inference, EMBENG_QUEUE_INFERENCE, index);
	ret = ret ? ret : open_ring(e, &r->gradient, EMBENG_QUEUE_GRADIENT, index);
	if (ret) {
		stop_replica(e, r);
		return ret;
	}
	r->started = true;
	e->steps[index] = (struct embeng_replica_steps){0};
	return 0;
}

static int start_features(struct embeng *e)
{
	const struct embeng_model *m = e->model;

	e->outputs = calloc(m->feature_count + 1, sizeof(*e->outputs));
	e->null_gradient_said = calloc(m->feature_count + 1, sizeof(*e->null_gradient_said));
	e->agreed = calloc(e->depth, sizeof(*e->agreed));
	e->frozen = calloc(m->table_count + 1, sizeof(*e->frozen));
	if (!e->outputs || !e->null_gradient_said || !e->agreed || !e->frozen)
		return fail(-ENOMEM, "no memory for the model");
	for (uint32_t i = 0; i < e->depth; i++) {
		e->agreed[i].rates = calloc(m->rate_count + 1, sizeof(*e->agreed[i].rates));
		if (!e->agreed[i].rates)
			return fail(-ENOMEM, "no memory for the model");
	}
	return 0;
}

/* All that is there before a replica starts. */
static int start_lists(struct embeng *e)
{
	e->slot_count = e->depth + 1;
	e->replicas = calloc(e->replica_count, sizeof(*e->replicas));
	e->steps = calloc(e->replica_count, sizeof(*e->steps));
	e->rings = calloc(1 + 3 * (size_t)e->replica_count, sizeof(*e->rings));
	if (!e->replicas || !e->steps || !e->rings)
		return fail(-ENOMEM, "no memory for %u replicas", e->replica_count);
	for (uint32_t i = 0; i < e->replica_count; i++)
		e->steps[i] = not_fed;
	return start_features(e);
}

int session_start(struct embeng *e)
{
	uint32_t wanted = e->model->engine.step_depth;
	int ret;

	if (wanted > e->device->info.step_depth)
		return fail(-ERANGE, "model: step_depth %u, the device has %u", wanted,
			    e->device->info.step_depth);
	e->depth = wanted ? wanted : e->device->info.step_depth;
	ret = start_lists(e);
	ret = ret ? ret : open_ring(e, &e->transfer, EMBENG_QUEUE_TRANSFER, 0);
	for (uint32_t i = 0; !ret && !e->shared && i < e->replica_count; i++)
		ret = session_start_replica(e, i);
	return ret;
}

int session_start_local(struct embeng *e, uint32_t depth)
{
	int ret;

	e->depth = depth;
	ret = start_lists(e);
	for (uint32_t i = 0; !ret && i < e->local_replicas; i++) {
		struct replica *r = &e->replicas[e->first_replica + i];

		ret = start_slots(e, r);
		r->started = true;
		e->steps[e->first_replica + i] = (struct embeng_replica_steps){0};
	}
	return ret;
}

static int grow_slots(struct embeng *e, struct slot *slots, const struct embeng_model *larger)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && slots && i < e->slot_count; i++)
		ret = slot_grow(&slots[i], larger);
	return ret;
}

int session_grow(struct embeng *e, const struct embeng_model *larger)
{
	const struct embeng_model *m = e->model;
	size_t features = m->feature_count + 1, more = larger->feature_count + 1;
	int ret = list_grow(&e->outputs, features, more, sizeof(*e->outputs));

	ret = ret ? ret
		  : list_grow(&e->null_gradient_said, features, more,
			      sizeof(*e->null_gradient_said));
	ret = ret ? ret
		  : list_grow(&e->frozen, m->table_count + 1, larger->table_count + 1,
			      sizeof(*e->frozen));
	for (uint32_t i = 0; !ret && i < e->depth; i++)
		ret = list_grow(&e->agreed[i].rates, m->rate_count + 1, larger->rate_count + 1,
				sizeof(*e->agreed[i].rates));
	for (uint32_t i = 0; !ret && i < e->replica_count; i++) {
		ret = grow_slots(e, e->replicas[i].training, larger);
		ret = ret ? ret : grow_slots(e, e->replicas[i].serving, larger);
	}
	return ret;
}

/* Never fed, nor is its first batch on its way: that lets go of the lock while it is copied. */
static bool is_unused(const struct embeng *e, const struct replica *r)
{
	for (uint32_t i = 0; r->started && i < e->slot_count; i++)
		if (r->training[i].state != SLOT_FREE || r->serving[i].state != SLOT_FREE)
			return false;
	return !r->order;
}

void session_share(struct embeng *e)
{
	for (uint32_t i = 0; i < e->replica_count; i++)
		if (is_unused(e, &e->replicas[i])) {
			stop_replica(e, &e->replicas[i]);
			e->steps[i] = not_fed;
		}
	e->shared = true;
}

void session_stop(struct embeng *e)
{
	close_ring(e, &e->transfer);
	region_free(e->device, &e->staging);
	region_free(e->device, &e->partition);
	for (uint32_t i = 0; e->replicas && i < e->replica_count; i++)
		stop_replica(e, &e->replicas[i]);
	free(e->replicas);
	free(e->steps);
	free(e->rings);
	buffers_free(e->device, &e->buffers);
	free(e->outputs);
	free(e->null_gradient_said);
	free(e->takes_sums);
	free(e->frozen);
	for (uint32_t i = 0; e->agreed && i < e->depth; i++)
		free(e->agreed[i].rates);
	free(e->agreed);
}
