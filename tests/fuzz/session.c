// SPDX-License-Identifier: MIT
/*
 * Makes the device, the context and the model of fuzzers of commands, changes them while they run,
 * and checks at the end that another context still works.
 */
#include "../unit/support/failing_alloc.h"
#include "batches.h"

#define READ EMBENG_REGION_DEVICE_READ
#define WRITE EMBENG_REGION_DEVICE_WRITE

struct embeng_mem session_blob(struct session *s)
{
	return arena_put(&s->in, s->blob.data, s->blob.length);
}

static void load(struct session *s)
{
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_MODEL_LOAD, .desc = session_blob(s)};

	fuzz_check(!watch_call(s->rig, &s->transfer, &cmd), "a good model");
}

struct session *session_new(struct fuzz *f)
{
	struct session *s = fuzz_memory(sizeof(*s));

	s->rig = watch_power_on();
	rig_context(s->rig, 0);
	arena_make(&s->in, s->rig, 0, 16384, READ);
	arena_make(&s->out, s->rig, 0, 8192, WRITE);
	arena_make(&s->both, s->rig, 0, 1024, READ | WRITE);
	arena_make(&s->small, s->rig, 0, 40, READ | WRITE);
	for (u32 r = 0; r < REPLICAS; r++) {
		watch_queue(&s->input[r], s->rig, 0, EMBENG_QUEUE_INPUT, r);
		watch_queue(&s->gradient[r], s->rig, 0, EMBENG_QUEUE_GRADIENT, r);
	}
	watch_queue(&s->inference, s->rig, 0, EMBENG_QUEUE_INFERENCE, 0);
	watch_queue(&s->transfer, s->rig, 0, EMBENG_QUEUE_TRANSFER, 0);
	model_make(f, s->rig->engine->caps.optimizers, &s->model);
	model_blob(&s->model, &s->blob);
	s->hash = s->blob.header.hash;
	load(s);
	return s;
}

void session_settle(struct session *s)
{
	watch_settle(s->rig, s->queues, QUEUES);
}

u64 session_applied(const struct session *s)
{
	const struct model *model = s->rig->engine->contexts[0]->model;

	return model ? model->applied : 0;
}

struct watch *session_any(struct session *s, struct fuzz *f)
{
	return &s->queues[fuzz_below(f, QUEUES)];
}

static void destroy_queue(struct session *s, struct watch *w)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_QUEUE_DESTROY,
				       .queue = w->queue->number};
	u32 kind = s->rig->engine->queues[cmd.queue]->kind;
	u32 replica = s->rig->engine->queues[cmd.queue]->replica;

	if (s->rig->queues[RIG_QUEUES - 8])
		return; /* numbers are left for those who come after */
	fuzz_check(!rig_admin(s->rig, &cmd).status, "queue %u", cmd.queue);
	watch_reap(w);
	watch_ended(w);
	scarce_end(); /* the rig wants its queue */
	watch_queue(w, s->rig, 0, kind, replica);
}

void session_change(struct session *s, struct fuzz *f)
{
	if (fuzz_rarely(f, 2)) {
		destroy_queue(s, session_any(s, f));
		return;
	}
	if (s->rig->contexts[0].used > RIG_REGIONS / 2)
		return;
	rig_unbind(s->rig, 0, &s->small.key);
	fuzz_check(!rig_wait(&s->rig->admin).status, "invalidate");
	s->small.key = rig_bind(s->rig, 0, s->small.data, s->small.length, READ | WRITE);
}

void session_free(struct session *s)
{
	struct embeng_admin_cmd cmd = {.opcode = EMBENG_ADMIN_CONTEXT_DESTROY};

	fuzz_check(!rig_admin(s->rig, &cmd).status, "context");
	for (u32 i = 0; i < QUEUES; i++) {
		watch_reap(&s->queues[i]);
		watch_ended(&s->queues[i]);
	}
	fuzz_check(!s->rig->engine->table_memory_used, "%llu bytes are not given back",
		   s->rig->engine->table_memory_used);
	watch_known_good(s->rig, 1);
	rig_free(s->rig);
	arena_free(&s->in);
	arena_free(&s->out);
	arena_free(&s->both);
	arena_free(&s->small);
	free(s);
}
