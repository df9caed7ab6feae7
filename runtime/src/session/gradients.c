// SPDX-License-Identifier: MIT
/*
 * Makes an UPDATE of the gradients of a step and hands it to the engine. Gradients that lie in a
 * buffer or in the step's own memory stay there; others are copied.
 *
 * The memory and buffers of an update belong to its slot until update_done(). The functions are
 * called without e->lock and take it for short times, but for submit_update(), give_update() and
 * update_done(), which are called with it held.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "session.h"
#include "wait.h"

static int check_given_features(const struct embeng *e, const struct slot *slot,
				const struct embeng_gradients *g)
{
	if (g->count != e->model->feature_count)
		return fail(-EINVAL,
			    "step %" PRIu64 ": gradients of %zu features, the model has %zu",
			    slot->step, g->count, e->model->feature_count);
	if (g->count && !g->features)
		return fail(-EINVAL, "step %" PRIu64 ": no gradients given", slot->step);
	for (size_t f = 0; g->elements && f < g->count; f++)
		if (g->features[f] && g->elements[f] != slot->elements[f])
			return fail(-EINVAL,
				    "step %" PRIu64 ": feature %s has gradients of %zu elements, "
				    "its activations have %" PRIu64,
				    slot->step, e->model->features[f].name, g->elements[f],
				    slot->elements[f]);
	return 0;
}

static int check_multiplier(const struct slot *slot, const struct embeng_gradients *g)
{
	if (isfinite(g->multiplier))
		return 0;
	return error_set(-ERANGE, EMBENG_STATUS_NUMBER,
			 "step %" PRIu64 ": multiplier %g must be finite", slot->step,
			 (double)g->multiplier);
}

/* The device would refuse it too, but only when it fetches the update. */
static int check_agreed(struct embeng *e, const struct slot *slot, const uint32_t *rates,
			uint32_t multiplier)
{
	struct agreed *agreed = &e->agreed[slot->step % e->depth];

	if (agreed->step != slot->step) {
		agreed->step = slot->step;
		agreed->multiplier = multiplier;
		memcpy(agreed->rates, rates, e->model->rate_count * sizeof(*rates));
		return 0;
	}
	for (size_t r = 0; r < e->model->rate_count; r++)
		if (agreed->rates[r] != rates[r])
			return error_set(-EINVAL, EMBENG_STATUS_RATE,
					 "step %" PRIu64
					 ": replica %u gives learning rate %s another "
					 "value than the others; they must be equal to the bit",
					 slot->step, slot->replica, e->model->rates[r]);
	if (agreed->multiplier != multiplier)
		return error_set(-EINVAL, EMBENG_STATUS_RATE,
				 "step %" PRIu64 ": replica %u gives another multiplier than the "
				 "others; they must be equal to the bit",
				 slot->step, slot->replica);
	return 0;
}

static char *own_gradient(const struct embeng *e, const struct slot *slot, size_t f)
{
	return slot->gradients.data + layout_update_head(e->model) + slot->at[f];
}

/* There may be no more than the descriptor. */
static bool has_own(const struct embeng *e, const struct slot *slot)
{
	return slot->gradients.length >= layout_update_head(e->model) + slot->bytes;
}

static bool in_buffer(struct embeng *e, const float *from, uint64_t bytes)
{
	struct embeng_mem mem;
	bool found;

	pthread_mutex_lock(&e->lock);
	found = buffers_find(&e->buffers, from, bytes, 4, &mem) != NULL;
	pthread_mutex_unlock(&e->lock);
	return found;
}

/*
 * Memory of the update: with room for gradients when any has to be copied. A program that writes
 * into it was given all of it by embeng_gradient_buffer(), so it stays where it is.
 */
static int need_gradients(struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	uint64_t bytes = layout_update_head(e->model);
	bool copies = !g;

	for (size_t f = 0; !copies && f < g->count; f++) {
		const float *from = session_gradient(e, g, f);

		copies = from && !in_buffer(e, from, 4 * slot->elements[f]);
	}
	return region_grow(e, &slot->gradients, copies ? bytes + slot->bytes : bytes);
}

/* Where a feature's gradients are: in a buffer, in our own, or copied there. */
static int place_gradient(struct embeng *e, struct slot *slot, size_t f, const float *from,
			  bool fenced, struct embeng_mem *mem)
{
	uint64_t bytes = 4 * slot->elements[f];
	struct buffer *buffer = NULL;
	int ret = 0;

	if (!has_own(e, slot) || (const char *)from != own_gradient(e, slot, f)) {
		pthread_mutex_lock(&e->lock);
		buffer = buffers_find(&e->buffers, from, bytes, 4, mem);
		if (buffer)
			ret = pin(&slot->gradient_pins, buffer);
		pthread_mutex_unlock(&e->lock);
	}
	if (buffer)
		return ret || fenced ? ret : gradients_check(e, slot, f, from);
	if (!has_own(e, slot))
		return fail(-EINVAL,
			    "step %" PRIu64 ": the buffer with the gradients of feature %s was "
			    "freed meanwhile",
			    slot->step, e->model->features[f].name);
	*mem = region_part(&slot->gradients, layout_update_head(e->model) + slot->at[f], bytes);
	if ((const char *)from != own_gradient(e, slot, f))
		return gradients_copy(e, slot, f, (float *)(void *)own_gradient(e, slot, f), from);
	return fenced ? 0 : gradients_check(e, slot, f, from);
}

static void say_null(struct embeng *e, size_t f)
{
	bool said;

	pthread_mutex_lock(&e->lock);
	said = e->null_gradient_said[f];
	e->null_gradient_said[f] = true;
	pthread_mutex_unlock(&e->lock);
	if (!said)
		log_say(&e->log, EMBENG_LOG_WARNING,
			"feature %s: no gradient given, taken as zeros; its rows are touched all "
			"the "
			"same",
			e->model->features[f].name);
}

static int describe_update(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
			   const uint32_t *rates, uint32_t multiplier)
{
	uint64_t rate_bytes = 4 * e->model->rate_count, rates_at = layout_update(e->model);
	char *to = slot->gradients.data;
	struct embeng_update head = {
		.feature_count = (uint32_t)g->count,
		.feature_stride = sizeof(struct embeng_update_feature),
		.rate_count = (uint32_t)e->model->rate_count,
		.model_hash = e->model_hash,
		.flags = EMBENG_UPDATE_MULTIPLIER,
		.multiplier = multiplier,
	};
	bool fenced = g->fence_count, checked = !fenced && gradients_are_checked(e);

	if (rate_bytes)
		head.rates = region_part(&slot->gradients, rates_at, rate_bytes);
	memcpy(to + rates_at, rates, rate_bytes);
	memcpy(to, &head, sizeof(head));
	for (size_t f = 0; f < g->count; f++) {
		struct embeng_update_feature feature = {
			.feature = (uint32_t)f,
			.flags = checked ? EMBENG_UPDATE_CHECKED : 0,
		};
		const float *from = session_gradient(e, g, f);
		int ret = 0;

		if (from)
			ret = place_gradient(e, slot, f, from, fenced, &feature.gradients);
		else if (!session_leaves_alone(e, f))
			say_null(e, f);
		if (ret)
			return ret;
		memcpy(to + sizeof(head) + f * sizeof(feature), &feature, sizeof(feature));
	}
	return 0;
}

/* The sentence of an update that the engine refused. */
static int update_error(const struct embeng *e, uint64_t step, const struct embeng_cqe *c)
{
	char what[160];

	if (c->status == EMBENG_STATUS_GRADIENT && c->feature < e->model->feature_count)
		return gradient_error(e, step, (uint32_t)c->limit, c->feature, c->element,
				      float_of((uint32_t)c->value));
	snprintf(what, sizeof(what), "step %" PRIu64 ": update", step);
	return feature_command_error(e, what, c);
}

static void update_done(struct request *request, void *arg)
{
	struct slot *slot = arg;
	struct embeng *e = slot->e;

	unpin_all(&slot->gradient_pins);
	slot->state = SLOT_FREE;
	e->replicas[slot->replica].applied = slot->step;
	if (request->status && !e->failed) {
		struct embeng_error error = {.size = sizeof(error)};

		e->failed = update_error(e, slot->step, &request->answer);
		embeng_last_error(&error);
		snprintf(e->failed_text, sizeof(e->failed_text), "%s", error.text);
	}
}

/* Once this is 0 the update is in the ring, and what it uses is update_done()'s to let go of. */
static int submit_update(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
			 struct deadline deadline)
{
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_UPDATE,
		.step = slot->step,
		.desc = region_part(&slot->gradients, 0, layout_update(e->model)),
	};
	int ret;

	slot->update.complete = update_done;
	slot->update.arg = slot;
	ret = fences_submit(e, slot, g, deadline, &cmd);
	if (ret)
		return ret;
	slot->state = SLOT_UPDATE;
	e->steps[slot->replica].updated = slot->step;
	e->counters.updates++;
	return 0;
}

static int give_update(struct embeng *e)
{
	pthread_mutex_unlock(&e->lock);
	e->device->ops->give(e->device);
	e->device->ops->event_signal(e->device);
	pthread_mutex_lock(&e->lock);
	session_reap(e);
	return session_failed(e);
}

/* Gradients behind a fence cannot be copied now, since they may not be there yet. */
static int check_in_place(struct embeng *e, const struct slot *slot,
			  const struct embeng_gradients *g)
{
	for (size_t f = 0; g->fence_count && f < g->count; f++) {
		const float *from = session_gradient(e, g, f);

		if (!from || (has_own(e, slot) && (const char *)from == own_gradient(e, slot, f)) ||
		    in_buffer(e, from, 4 * slot->elements[f]))
			continue;
		return fail(
			-EINVAL,
			"step %" PRIu64 ": the gradients of feature %s wait for a fence, "
			"so they must stand in a buffer, or where embeng_gradient_buffer() says",
			slot->step, e->model->features[f].name);
	}
	return 0;
}

static int apply_given(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
		       uint32_t *rates, struct deadline deadline)
{
	uint32_t multiplier = bits(g->multiplier != 0 || g->has_multiplier ? g->multiplier : 1.0f);
	int ret = check_given_features(e, slot, g);

	ret = ret ? ret : check_multiplier(slot, g);
	ret = ret ? ret : fences_check(e, slot, g);
	ret = ret ? ret : check_in_place(e, slot, g);
	ret = ret ? ret : rates_take(e, slot, g, rates);
	ret = ret ? ret : need_gradients(e, slot, g);
	if (ret)
		return ret;
	ret = describe_update(e, slot, g, rates, multiplier);
	pthread_mutex_lock(&e->lock);
	ret = ret ? ret : check_agreed(e, slot, rates, multiplier);
	ret = ret ? ret : submit_update(e, slot, g, deadline);
	if (ret)
		unpin_all(&slot->gradient_pins);
	else
		ret = give_update(e);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

static struct slot *find_dequeued(struct embeng *e, uint32_t replica)
{
	struct embeng_replica_steps steps = {0};
	struct slot *slot;
	uint64_t next;

	pthread_mutex_lock(&e->lock);
	slot = session_view(e, replica);
	if (e->replicas[replica].started)
		steps = e->steps[replica];
	next = steps.updated + 1;
	if (!slot && steps.accepted >= next)
		fail(-EPROTO, "step %" PRIu64 ": its activations of replica %u were not dequeued",
		     next, replica);
	else if (!slot)
		fail(-EPROTO,
		     "step %" PRIu64 ": replica %u has no training batch that waits for gradients",
		     next, replica);
	pthread_mutex_unlock(&e->lock);
	return slot;
}

int embeng_apply_gradients(struct embeng *e, const struct embeng_gradients *g, int64_t timeout_ns)
{
	int ret = session_check(e, "embeng_apply_gradients");
	uint32_t *rates;
	struct slot *slot;

	if (ret)
		return ret;
	if (!g || g->size < sizeof(*g))
		return fail(-EINVAL, "embeng_apply_gradients: gradients must be given, with their "
				     "size");
	ret = session_check_replica(e, g->replica, "embeng_apply_gradients");
	if (ret)
		return ret;
	slot = find_dequeued(e, g->replica);
	if (!slot)
		return -EPROTO;
	rates = calloc(e->model->rate_count + 1, sizeof(*rates));
	if (!rates)
		return fail(-ENOMEM, "no memory for learning rates");
	ret = apply_given(e, slot, g, rates, deadline_in(timeout_ns));
	free(rates);
	return ret;
}

float *embeng_gradient_buffer(struct embeng *e, uint32_t replica, int feature)
{
	struct slot *slot;

	if (session_check_replica(e, replica, "embeng_gradient_buffer"))
		return NULL;
	if (feature < 0 || (size_t)feature >= e->model->feature_count) {
		fail(-ENOENT, "embeng_gradient_buffer: feature %d, the model has %zu", feature,
		     e->model->feature_count);
		return NULL;
	}
	slot = find_dequeued(e, replica);
	if (!slot || need_gradients(e, slot, NULL))
		return NULL;
	return (float *)own_gradient(e, slot, (size_t)feature);
}
