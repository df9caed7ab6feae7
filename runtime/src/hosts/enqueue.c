// SPDX-License-Identifier: MIT
/*
 * The calls of a step on a handle over all hosts: batches are enqueued and dequeued, gradients handed in. A call
 * puts what the stages need into its slot; the stages do the rest.
 *
 * e->lock is held inside, but not while ids and gradients are copied: the slot is the call's then, which
 * its state says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/layout.h"
#include "segment.h"
#include "steps.h"

/* A batch that is refused is refused by all hosts, unless nobody else need know that it was tried. */
static int take_batch_ids(struct hosts *h, struct slot *slot, const struct embeng_batch *b)
{
	struct embeng *e = h->e;
	int ret = ids_resolve(e, slot, b);

	ret = ret ? ret
		  : layout_outputs(e->model, slot->resolved, slot->at, slot->elements,
				   &slot->bytes);
	if (ret)
		return ret;
	pthread_mutex_unlock(&e->lock);
	ret = ids_pack(h, slot, b);
	if (!ret && !slot->ids_only)
		ret = memory_of_slot(h, &slot->activations, slot->bytes);
	if (!ret && !slot->ids_only)
		ret = slot_note_lengths(e, slot, b);
	pthread_mutex_lock(&e->lock);
	return ret;
}

static bool has_outcome(struct embeng *e, void *arg)
{
	const struct slot *slot = arg;

	(void)e;
	return slot->cargo->outcome != 0;
}

/* Waits for the hosts' exchange of ids. Return: 0, or why no host takes the step. */
static int await_outcome(struct hosts *h, struct slot *slot, struct deadline deadline)
{
	int ret = hosts_wait(h, has_outcome, slot, deadline);

	if (!ret && slot->cargo->outcome < 0)
		ret = fail(slot->cargo->outcome, "%s", h->refusal_text);
	return ret;
}

/* Has all hosts refuse the step, with the thread's last sentence. */
static int refuse_step(struct hosts *h, struct slot *slot, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	if (!h->refused && !slot->cargo->outcome) {
		h->refused = slot;
		h->refusal = code;
		snprintf(h->refusal_text, sizeof(h->refusal_text), "%s", error.text);
		pthread_cond_broadcast(&h->changed);
	}
	return await_outcome(h, slot, deadline_never());
}

static void accept_slot(struct hosts *h, struct slot *slot, enum slot_state state)
{
	struct embeng *e = h->e;

	e->steps[slot->replica].accepted = e->steps[slot->replica].looked = slot->step;
	slot->state = state;
	if (state == SLOT_UPDATE) {
		e->steps[slot->replica].updated = slot->step;
		e->counters.updates++;
	}
	slot->order = ++e->replicas[slot->replica].order;
	session_fix_outputs(e, slot);
	e->counters.lookups++;
	pthread_cond_broadcast(&h->changed);
}

static void note_feeder(struct hosts *h, struct slot *slot)
{
	struct notice *n = &h->notices[slot->replica - h->e->first_replica];

	n->fed = true;
	n->feeder = slot->cargo->feeder = pthread_self();
	slot->cargo->inside = true;
	slot->cargo->answered = false;
	slot->cargo->discarded = false;
	slot->cargo->outcome = 0;
}

/*
 * The last replica's call waits for the other hosts, so that it can tell what they refused. It may be
 * interrupted then, and goes on when it is made again.
 */
static int await_hosts(struct hosts *h, struct slot *slot, const struct embeng_batch *b)
{
	struct notice *n = &h->notices[slot->replica - h->e->first_replica];
	struct deadline deadline = deadline_never();
	int ret;

	deadline.program = true;
	n->resumes = NULL;
	ret = steps_enqueued(h) >= slot->step ? await_outcome(h, slot, deadline) : 0;
	slot->cargo->inside = false;
	if (ret == -EINTR && !h->failed && !slot->cargo->outcome) {
		n->resumes = b;
		n->slot = slot;
		n->order = slot->order;
	} else if (ret) {
		slot->state = SLOT_FREE;
	}
	return ret;
}

static int finish_enqueue(struct hosts *h, struct slot *slot, const struct embeng_batch *b, int ret)
{
	if (!ret && slot->cargo->outcome < 0)
		ret = fail(slot->cargo->outcome, "%s", h->refusal_text);
	if (!ret) {
		accept_slot(h, slot, slot->ids_only ? SLOT_UPDATE : SLOT_ACCEPTED);
		return await_hosts(h, slot, b);
	}
	slot->cargo->inside = false;
	if (slot->ids_only)
		step_take_back(h->e, slot);
	slot->state = SLOT_FREE;
	return ret;
}

/* The slot of a batch whose call was interrupted, or NULL. */
static struct slot *find_interrupted(struct hosts *h, const struct embeng_batch *b)
{
	struct notice *n = &h->notices[b->replica - h->e->first_replica];
	struct slot *slot = n->slot;

	if (n->resumes != b || slot->order != n->order || slot->state == SLOT_FREE)
		return NULL;
	slot->cargo->inside = true;
	return slot;
}

static int take_slot(struct hosts *h, const struct embeng_batch *b, struct deadline deadline,
		     struct slot **out)
{
	struct embeng *e = h->e;
	int ret = hosts_check(h);

	ret = ret ? ret : steps_notice(h, b->replica);
	if (ret)
		return ret;
	*out = slot_take(e, b);
	if (!*out)
		return -EBUSY;
	note_feeder(h, *out);
	ret = hosts_wait(h, slot_has_room, *out, deadline);
	if (hosts_is_late(h, ret))
		ret = slot_say_room(e, *out, ret);
	if (ret) {
		(*out)->cargo->inside = false;
		(*out)->state = SLOT_FREE;
	}
	return ret;
}

static int enqueue_training(struct hosts *h, const struct embeng_batch *b, struct deadline deadline)
{
	struct slot *slot = find_interrupted(h, b);
	int ret;

	if (slot)
		return await_hosts(h, slot, b);
	ret = take_slot(h, b, deadline, &slot);
	if (ret)
		return ret;
	ret = take_batch_ids(h, slot, b);
	if (ret && ret != -ENOMEM)
		ret = refuse_step(h, slot, ret);
	return finish_enqueue(h, slot, b, ret);
}

static int enqueue_serving(struct hosts *h, const struct embeng_batch *b, struct deadline deadline)
{
	struct embeng *e = h->e;
	struct slot *slot;
	int ret = hosts_check(h);

	if (!ret && !e->local_replicas)
		ret = fail(-ERANGE,
			   "embeng_enqueue: this host has no replica; use embeng_lookup()");
	ret = ret ? ret : session_check_replica(e, b->replica, "embeng_enqueue");
	if (ret)
		return ret;
	slot = slot_take(e, b);
	if (!slot)
		return -EBUSY;
	pthread_mutex_unlock(&e->lock);
	ret = infer_slot(h, slot, b, deadline);
	pthread_mutex_lock(&e->lock);
	slot->state = ret ? SLOT_FREE : SLOT_ACCEPTED;
	slot->order = ++e->replicas[slot->replica].order;
	e->counters.lookups += !ret;
	return ret;
}

int hosts_enqueue(struct embeng *e, struct embeng_batch *b, int64_t timeout_ns)
{
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = b->mode == EMBENG_TRAIN ? enqueue_training(e->hosts, b, deadline_in(timeout_ns))
				      : enqueue_serving(e->hosts, b, deadline_in(timeout_ns));
	pthread_mutex_unlock(&e->lock);
	return ret;
}

/* The slot that a dequeue waits for, as it was when it began. */
struct awaited {
	const struct slot *slot;
	uint64_t order;
};

static bool is_withdrawn(const struct awaited *a)
{
	return a->slot->state != SLOT_ACCEPTED || a->slot->order != a->order;
}

static bool is_answered(struct embeng *e, void *arg)
{
	const struct awaited *a = arg;

	(void)e;
	return is_withdrawn(a) || a->slot->mode == EMBENG_INFERENCE || a->slot->cargo->answered;
}

static void clear_event(const struct hosts *h)
{
	uint64_t count;

	if (h->event >= 0 && read(h->event, &count, sizeof(count)) < 0)
		return; /* nothing was signalled */
}

static int say_late(struct embeng *e, uint32_t replica, int late)
{
	char missing[128];

	missing_part(e, missing, sizeof(missing));
	return fail(late, "replica %u: %s; missing is %s%s", replica,
		    late == -ETIME ? "deadline passed" : "the lookup would wait for ever", missing,
		    wait_advice(late));
}

static int dequeue_oldest(struct hosts *h, uint32_t replica, struct deadline deadline,
			  struct slot **out)
{
	struct embeng *e = h->e;
	struct slot *slot = slot_oldest(e, replica, SLOT_ACCEPTED, true);
	struct awaited awaited = {.slot = slot};
	int ret = slot ? 0 : steps_notice(h, replica);

	if (ret)
		return ret;
	if (!slot)
		return fail(-EPROTO, "replica %u: nothing is enqueued to dequeue", replica);
	awaited.order = slot->order;
	clear_event(h);
	ret = hosts_wait(h, is_answered, &awaited, deadline);
	if (hosts_is_late(h, ret))
		return say_late(e, replica, ret);
	if (!ret && is_withdrawn(&awaited)) {
		ret = steps_notice(h, replica);
		ret = ret ? ret : fail(h->refusal, "%s", h->refusal_text);
	}
	if (ret)
		return ret;
	slot->state = SLOT_VIEW;
	slot->viewer = pthread_self();
	slot_make_views(e, slot);
	*out = slot;
	return 0;
}

int hosts_dequeue(struct embeng *e, uint32_t replica, int64_t timeout_ns,
		  struct embeng_activations *activations)
{
	struct slot *slot = NULL;
	int ret = session_check_activations(activations);

	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	ret = hosts_check(e->hosts);
	ret = ret ? ret : dequeue_oldest(e->hosts, replica, deadline_in(timeout_ns), &slot);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		session_show(slot, activations);
	return ret;
}

/* -- gradients -- */

static int make_gradients(struct hosts *h, struct slot *slot, const struct embeng_gradients *g)
{
	struct embeng *e = h->e;
	int ret = gradients_check_step(e, slot, g);

	if (!ret && g->fence_count)
		ret = fail(-ENOTSUP,
			   "step %" PRIu64
			   ": gradients over a group of hosts wait for no fence; wait "
			   "until they are there, and give none",
			   slot->step);
	ret = ret ? ret : gradients_take_multiplier(slot, g);
	ret = ret ? ret : rates_take(e, slot, g);
	if (!ret)
		rates_defer(e, slot, g);
	ret = ret ? ret : gradients_pack(h, slot, g);
	for (size_t f = 0; !ret && f < g->count; f++)
		if (!session_gradient(e, g, f) && !session_leaves_alone(e, f))
			gradients_say_null(e, f);
	return ret;
}

static struct slot *find_view(struct hosts *h, uint32_t replica, int *ret)
{
	struct slot *slot = NULL;

	pthread_mutex_lock(&h->e->lock);
	*ret = hosts_check(h);
	if (!*ret) {
		slot = session_view_or_fail(h->e, replica);
		*ret = slot ? 0 : -EPROTO;
	}
	pthread_mutex_unlock(&h->e->lock);
	return slot;
}

/* e->lock is held. */
static void give_gradients(struct hosts *h, struct slot *slot)
{
	slot->state = SLOT_UPDATE;
	h->e->steps[slot->replica].updated = slot->step;
	h->e->counters.updates++;
	pthread_cond_broadcast(&h->changed);
}

int hosts_apply(struct embeng *e, const struct embeng_gradients *g)
{
	struct hosts *h = e->hosts;
	int ret;
	struct slot *slot = find_view(h, g->replica, &ret);

	ret = ret ? ret : make_gradients(h, slot, g);
	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	ret = hosts_check(h);
	ret = ret ? ret : step_agree(e, slot);
	if (!ret)
		give_gradients(h, slot);
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int hosts_discard(struct embeng *e, uint32_t replica)
{
	struct hosts *h = e->hosts;
	int ret;
	struct slot *slot = find_view(h, replica, &ret);

	ret = ret ? ret : gradients_pack_discard(h, slot);
	if (ret)
		return ret;
	pthread_mutex_lock(&e->lock);
	slot->cargo->discarded = true;
	give_gradients(h, slot);
	pthread_mutex_unlock(&e->lock);
	return 0;
}

/* They are packed when they are handed in, so that they may be written until then. */
float *hosts_gradient_buffer(struct embeng *e, struct slot *slot, size_t feature)
{
	if (memory_of_slot(e->hosts, &slot->gradients, slot->bytes))
		return NULL;
	return (float *)(void *)(slot->gradients.data + slot->at[feature]);
}

/* Everything of this host that can be refused is, before others know of the step. */
/*
 * An owner looks the batch up when it comes, and so finds the largest numbers before the update that pipelining
 * holds back; one process finds them after it.
 */
static int check_unlooked_max(const struct hosts *h, const struct slot *slot,
			      const struct embeng_gradients *g)
{
	const struct embeng_model *m = h->e->model;

	for (size_t t = 0; m->engine.pipelining && !g->sums && t < m->table_count; t++) {
		if (m->tables[t].combiner == EMBENG_MAX && table_has_optimizer(&m->tables[t]))
			return fail(-ENOTSUP,
				    "step %" PRIu64
				    ": the combiner of table %s is max, and the model is "
				    "pipelined, so over hosts its gradients cannot be given "
				    "without a lookup; look the batch up, or open the model "
				    "without pipelining",
				    slot->step, m->tables[t].name);
	}
	return 0;
}

static int update_slot(struct hosts *h, struct slot *slot, const struct embeng_batch *b,
		       const struct embeng_gradients *g)
{
	struct embeng *e = h->e;
	int ret = check_unlooked_max(h, slot, g);

	ret = ret ? ret : take_batch_ids(h, slot, b);
	if (ret && ret != -ENOMEM)
		return finish_enqueue(h, slot, b, refuse_step(h, slot, ret));
	pthread_mutex_unlock(&e->lock);
	ret = ret ? ret : make_gradients(h, slot, g);
	pthread_mutex_lock(&e->lock);
	ret = ret ? ret : step_agree(e, slot);
	return finish_enqueue(h, slot, b, ret);
}

int hosts_update(struct embeng *e, struct embeng_batch *b, const struct embeng_gradients *g,
		 int64_t timeout_ns)
{
	const struct deadline deadline = deadline_in(timeout_ns);
	struct hosts *h = e->hosts;
	struct slot *slot;
	int ret;

	pthread_mutex_lock(&e->lock);
	slot = find_interrupted(h, b);
	if (slot) {
		ret = await_hosts(h, slot, b);
		pthread_mutex_unlock(&e->lock);
		return ret;
	}
	ret = hosts_wait(h, update_has_no_view, &b->replica, deadline);
	if (hosts_is_late(h, ret))
		ret = update_say_older(e, b->replica, ret);
	ret = ret ? ret : take_slot(h, b, deadline, &slot);
	if (!ret) {
		slot->ids_only = true;
		ret = update_slot(h, slot, b, g);
	}
	pthread_mutex_unlock(&e->lock);
	return ret;
}

int hosts_fd(struct embeng *e)
{
	struct hosts *h = e->hosts;
	int fd;

	pthread_mutex_lock(&e->lock);
	if (h->event < 0)
		h->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = h->event < 0 ? fail(-errno, "embeng_fd: no descriptor can be made") : h->event;
	pthread_mutex_unlock(&e->lock);
	return fd;
}
