// SPDX-License-Identifier: MIT
/*
 * Enqueues a batch: takes a free slot, waits until the step depth has room, and submits the LOOKUP.
 *
 * embeng_enqueue() takes e->lock and releases it while arrays are copied and while it waits. The
 * other functions are called with it held.
 */
#include <inttypes.h>

#include "session.h"
#include "wait.h"

static int check_trains(const struct embeng_model *m)
{
	const struct feature *f = m->features;

	if (model_trains(m))
		return 0;
	return error_set(-EINVAL, EMBENG_STATUS_TRAINING,
			 "feature %s: table %s has no optimizer%s, so nothing can train; enqueue "
			 "for inference, or give a table one",
			 f->name, m->tables[f->table].name,
			 m->feature_count > 1 ? ", and neither have the tables of the others" : "");
}

static struct slot *find_free(struct embeng *e, const struct embeng_batch *b)
{
	struct replica *r = &e->replicas[b->replica];
	struct slot *slots = b->mode == EMBENG_TRAIN ? r->training : r->serving;

	if (!e->calls)
		session_reap(e);
	for (uint32_t i = 0; i < e->slot_count; i++)
		if (slots[i].state == SLOT_FREE)
			return &slots[i];
	fail(-EBUSY, "replica %u: all %u activation buffers are in use; dequeue and %s first",
	     b->replica, e->slot_count,
	     b->mode == EMBENG_TRAIN ? "apply gradients" : "release views");
	return NULL;
}

struct slot *slot_take(struct embeng *e, const struct embeng_batch *b)
{
	struct slot *slot = find_free(e, b);

	if (!slot)
		return NULL;
	slot->mode = b->mode;
	slot->replica = b->replica;
	slot->step = b->mode == EMBENG_TRAIN ? e->steps[b->replica].accepted + 1 : 0;
	slot->withdrawn = false;
	slot->ids_only = false;
	slot->outputs = NULL;
	slot->state = SLOT_LOOKUP;
	return slot;
}

bool slot_has_room(struct embeng *e, void *arg)
{
	const struct slot *slot = arg;

	struct embeng_steps steps = session_steps(e);

	return embeng_steps_have_room(&steps, slot->step);
}

int slot_say_room(struct embeng *e, const struct slot *slot, int ret)
{
	char missing[128];

	missing_part(e, missing, sizeof(missing));
	return fail(ret,
		    "step %" PRIu64 " of replica %u is more than %u steps ahead; missing is %s%s",
		    slot->step, slot->replica, e->depth, missing, wait_advice(ret));
}

int slot_await_room(struct embeng *e, struct slot *slot, struct deadline deadline)
{
	int ret = wait_until(e, slot_has_room, slot, deadline);

	return wait_is_over(ret) ? slot_say_room(e, slot, ret) : ret;
}

/* A submitted LOOKUP counts as one that has read the tables (uapi/embeng_steps.h). */
static void set_looked_up(struct embeng *e, uint32_t replica, uint64_t step)
{
	e->steps[replica].accepted = step;
	e->steps[replica].looked = step;
}

/* The engine forgets it with all that its replica gave after it: the step is given again. */
static void withdraw_steps(struct slot *failed)
{
	struct replica *r = &failed->e->replicas[failed->replica];

	set_looked_up(failed->e, failed->replica, failed->step - 1);
	for (uint32_t i = 0; i < failed->e->slot_count; i++)
		if (r->training[i].state != SLOT_FREE && r->training[i].step > failed->step)
			r->training[i].withdrawn = true;
}

static void lookup_done(struct request *request, void *arg)
{
	struct slot *slot = arg;

	if (slot->mode == EMBENG_INFERENCE)
		gate_leave(slot->e);
	else if (request->status && !slot->withdrawn)
		withdraw_steps(slot);
}

static bool is_accepted(struct embeng *e, void *arg)
{
	const struct request *request = arg;

	(void)e;
	return request->accepted || request->done;
}

void session_fix_outputs(struct embeng *e, const struct slot *slot)
{
	if (!e->model->engine.fixed_shapes)
		return;
	for (size_t f = 0; f < e->model->feature_count; f++)
		if (!e->outputs[f].fixed)
			e->outputs[f] = slot->resolved[f];
}

int slot_look_up(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
		 const struct embeng_mem *descriptor, uint64_t after)
{
	struct replica *r = &e->replicas[b->replica];
	bool train = b->mode == EMBENG_TRAIN;
	struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_LOOKUP,
		.flags = slot->ids_only ? EMBENG_CMD_IDS_ONLY : 0,
		.step = train ? slot->step : 0,
		.after = train ? 0 : after,
		.desc = *descriptor,
	};
	int ret = session_withdrawn(slot);

	if (ret)
		return ret;
	slot->lookup.complete = lookup_done;
	slot->lookup.arg = slot;
	if (train)
		set_looked_up(e, b->replica, slot->step);
	ret = submit(e, train ? &r->input : &r->inference, &cmd, &slot->lookup);
	/* A lookup that was not submitted never reaches lookup_done(), so the gate is left here. */
	if (ret && !train)
		gate_leave(e);
	if (ret && train && !slot->withdrawn)
		set_looked_up(e, b->replica, slot->step - 1);
	if (ret)
		return ret;
	pthread_mutex_unlock(&e->lock);
	e->device->ops->give(e->device);
	pthread_mutex_lock(&e->lock);
	/* The depth has room, so acceptance waits for nothing that a program does. */
	ret = wait_until(e, is_accepted, &slot->lookup, deadline_never());
	ret = ret ? ret : session_aborted(e, &slot->lookup);
	if (!ret && slot->lookup.status)
		ret = session_withdrawn(slot);
	if (!ret && slot->lookup.status)
		ret = lookup_error(e, b, &slot->lookup.answer);
	return ret;
}

/* The lock is held, but while arrays are copied. */
static int enqueue_into(struct embeng *e, struct slot *slot, const struct embeng_batch *b,
			struct deadline deadline)
{
	struct embeng_mem descriptor;
	uint64_t after = 0;
	int ret;

	ret = batch_check(b, e->outputs, slot->resolved);
	if (!ret && b->mode == EMBENG_TRAIN)
		ret = slot_await_room(e, slot, deadline);
	if (ret)
		return ret;
	ret = describe_lookup(e, slot, b, &descriptor);
	if (ret)
		return ret;
	if (b->mode == EMBENG_INFERENCE) {
		ret = gate_enter(e, deadline, "embeng_enqueue", &after);
		if (ret)
			return ret;
	}
	return slot_look_up(e, slot, b, &descriptor, after);
}

static int enqueue_locked(struct embeng *e, const struct embeng_batch *b, struct deadline deadline)
{
	struct replica *r = &e->replicas[b->replica];
	struct slot *slot;
	int ret = session_failed(e);

	if (ret)
		return ret;
	if (!r->started) {
		ret = session_start_replica(e, b->replica);
		if (ret)
			return ret;
	}
	slot = slot_take(e, b);
	if (!slot)
		return -EBUSY;
	ret = enqueue_into(e, slot, b, deadline);
	unpin_all(&slot->input_pins);
	slot->state = ret ? SLOT_FREE : SLOT_ACCEPTED;
	if (ret)
		return ret;
	slot->order = ++r->order;
	session_fix_outputs(e, slot);
	e->counters.lookups++;
	return 0;
}

int session_check_batch(const struct embeng *e, struct embeng_batch *b, const char *call)
{
	int ret = session_check(e, call);

	if (ret)
		return ret;
	if (!b || b->e != e)
		return fail(-EINVAL, "%s: %s", call,
			    b ? "the batch was made for another handle" : "no batch given");
	ret = session_check_feeder(e, b->replica, b->mode, call);
	ret = ret ? ret : batch_grow(b, true);
	return ret || b->mode != EMBENG_TRAIN ? ret : check_trains(e->model);
}

int embeng_enqueue(struct embeng *e, struct embeng_batch *b, int64_t timeout_ns)
{
	int ret = session_check_batch(e, b, "embeng_enqueue");

	if (ret)
		return ret;
	if (e->calls)
		return e->calls->enqueue(e, b, timeout_ns);
	pthread_mutex_lock(&e->lock);
	ret = enqueue_locked(e, b, deadline_in(timeout_ns));
	pthread_mutex_unlock(&e->lock);
	return ret;
}
