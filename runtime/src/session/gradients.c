// SPDX-License-Identifier: MIT
/*
 * Makes an UPDATE of the gradients of a step and hands it to the engine. Gradients that lie in a
 * buffer or in the step's own memory stay there; others are copied.
 *
 * The memory and buffers of an update belong to its slot until update_done(). The functions are
 * called without e->lock and take it for short times, but for submit_update() and what comes behind
 * it up to session_view_or_fail(), and update_done(), which are called with it held.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ask.h"
#include "base/bits.h"
#include "session.h"
#include "wait.h"

int gradients_check_given(const struct embeng *e, const char *what, const uint64_t *elements,
			  const struct embeng_gradients *g)
{
	if (g->count != e->model->feature_count)
		return fail(-EINVAL, "%s: gradients of %zu features, the model has %zu", what,
			    g->count, e->model->feature_count);
	if (g->count && !g->features)
		return fail(-EINVAL, "%s: no gradients given", what);
	for (size_t f = 0; g->elements && f < g->count; f++)
		if (g->features[f] && g->elements[f] != elements[f])
			return fail(-EINVAL,
				    "%s: feature %s has gradients of %zu elements, its "
				    "activations have %" PRIu64,
				    what, e->model->features[f].name, g->elements[f], elements[f]);
	return 0;
}

int gradients_check_step(const struct embeng *e, const struct slot *slot,
			 const struct embeng_gradients *g)
{
	char what[32];

	snprintf(what, sizeof(what), "step %" PRIu64, slot->step);
	return gradients_check_given(e, what, slot->elements, g);
}

int gradients_take_multiplier(struct slot *slot, const struct embeng_gradients *g)
{
	slot->multiplier = bits(g->multiplier != 0 || g->has_multiplier ? g->multiplier : 1.0f);
	if (isfinite(g->multiplier))
		return 0;
	return error_set(-ERANGE, EMBENG_STATUS_NUMBER,
			 "step %" PRIu64 ": multiplier %g must be finite", slot->step,
			 (double)g->multiplier);
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

void gradients_say_null(struct embeng *e, size_t f)
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

static uint32_t update_flags(const struct embeng *e, const struct slot *slot, size_t f, bool fenced)
{
	if (slot_takes_sums(e, slot, f))
		return EMBENG_UPDATE_SUMS | EMBENG_UPDATE_CHECKED;
	return !fenced && gradients_are_checked(e, slot, f) ? EMBENG_UPDATE_CHECKED : 0;
}

static int describe_update(struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	uint64_t rate_bytes = 4 * e->model->rate_count, rates_at = layout_update(e->model);
	char *to = slot->gradients.data;
	struct embeng_update head = {
		.feature_count = (uint32_t)g->count,
		.feature_stride = sizeof(struct embeng_update_feature),
		.rate_count = (uint32_t)e->model->rate_count,
		.model_hash = e->model_hash,
		.flags = EMBENG_UPDATE_MULTIPLIER,
		.multiplier = slot->multiplier,
	};
	bool fenced = g->fence_count;

	if (rate_bytes)
		head.rates = region_part(&slot->gradients, rates_at, rate_bytes);
	memcpy(to + rates_at, slot->rates, rate_bytes);
	memcpy(to, &head, sizeof(head));
	for (size_t f = 0; f < g->count; f++) {
		struct embeng_update_feature feature = {
			.feature = (uint32_t)f,
			.flags = update_flags(e, slot, f, fenced),
		};
		const float *from = session_gradient(e, g, f);
		int ret = 0;

		if (from)
			ret = place_gradient(e, slot, f, from, fenced, &feature.gradients);
		else if (!session_leaves_alone(e, f))
			gradients_say_null(e, f);
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
			 struct deadline deadline, struct embeng_cmd *cmd)
{
	int ret;

	cmd->opcode = EMBENG_OP_UPDATE;
	cmd->step = slot->step;
	slot->update.complete = update_done;
	slot->update.arg = slot;
	ret = fences_submit(e, slot, g, deadline, cmd);
	if (ret)
		return ret;
	slot->state = SLOT_UPDATE;
	e->steps[slot->replica].updated = slot->step;
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

/* It takes no lock for longer than a moment, so that the program may be asked in between. */
static int fill_update(struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	bool before = ask_allow(true);
	int ret = need_gradients(e, slot, g);

	ret = ret ? ret : describe_update(e, slot, g);
	ask_allow(before);
	if (!ret)
		return 0;
	pthread_mutex_lock(&e->lock);
	unpin_all(&slot->gradient_pins);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int update_make(struct embeng *e, struct slot *slot, const struct embeng_gradients *g)
{
	int ret = gradients_check_step(e, slot, g);

	ret = ret ? ret : gradients_take_multiplier(slot, g);
	ret = ret ? ret : sums_take(e, slot, g);
	ret = ret ? ret : fences_check(e, slot, g);
	ret = ret ? ret : check_in_place(e, slot, g);
	ret = ret ? ret : rates_take(e, slot, g);
	return ret ? ret : fill_update(e, slot, g);
}

int update_give(struct embeng *e, struct slot *slot, const struct embeng_gradients *g,
		struct deadline deadline)
{
	struct embeng_cmd cmd = {
		.desc = region_part(&slot->gradients, 0, layout_update(e->model)),
	};
	int ret = step_agree(e, slot);

	ret = ret ? ret : submit_update(e, slot, g, deadline, &cmd);
	if (ret) {
		step_take_back(e, slot);
		unpin_all(&slot->gradient_pins);
		return ret;
	}
	e->counters.updates++;
	return give_update(e);
}

int update_discard(struct embeng *e, struct slot *slot, struct deadline deadline)
{
	const struct embeng_gradients none = {.size = sizeof(none)};
	struct embeng_cmd cmd = {.flags = EMBENG_CMD_DISCARD};
	int ret = submit_update(e, slot, &none, deadline, &cmd);

	if (ret)
		return ret;
	step_give_up(e, slot->step);
	return give_update(e);
}

struct slot *session_view_or_fail(struct embeng *e, uint32_t replica)
{
	struct slot *slot = session_view(e, replica);
	struct embeng_replica_steps steps = {0};
	uint64_t next;

	if (slot)
		return slot;
	if (e->replicas[replica].started)
		steps = e->steps[replica];
	next = steps.updated + 1;
	if (steps.accepted >= next)
		fail(-EPROTO, "step %" PRIu64 ": its activations of replica %u were not dequeued",
		     next, replica);
	else
		fail(-EPROTO,
		     "step %" PRIu64 ": replica %u has no training batch that waits for gradients",
		     next, replica);
	return NULL;
}

static struct slot *find_dequeued(struct embeng *e, uint32_t replica)
{
	struct slot *slot;

	pthread_mutex_lock(&e->lock);
	slot = session_view_or_fail(e, replica);
	pthread_mutex_unlock(&e->lock);
	return slot;
}

int embeng_apply_gradients(struct embeng *e, const struct embeng_gradients *g, int64_t timeout_ns)
{
	int ret = session_check(e, "embeng_apply_gradients");
	struct slot *slot;

	if (ret)
		return ret;
	if (!g || g->size < sizeof(*g))
		return fail(-EINVAL, "embeng_apply_gradients: gradients must be given, with their "
				     "size");
	ret = session_check_replica(e, g->replica, "embeng_apply_gradients");
	if (ret)
		return ret;
	if (e->calls)
		return e->calls->apply(e, g);
	slot = find_dequeued(e, g->replica);
	if (!slot)
		return -EPROTO;
	ret = update_make(e, slot, g);
	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	ret = update_give(e, slot, g, deadline_in(timeout_ns));
	pthread_mutex_unlock(&e->lock);
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
	if (slot && e->calls)
		return e->calls->gradient_buffer(e, slot, (size_t)feature);
	if (!slot || need_gradients(e, slot, NULL))
		return NULL;
	return (float *)own_gradient(e, slot, (size_t)feature);
}
