// SPDX-License-Identifier: MIT
/*
 * Creates a context and ends it. A context is one client of the device: a table of regions, queues
 * and at most one model. It ends in two steps: context_kill() stops its queues, and context_reap()
 * frees it when no thread works for it any more.
 *
 * Called with engine->lock held.
 */
#include "internal.h"

static u16 check_context_number(struct engine *e, const struct embeng_admin_cmd *cmd,
				struct fault *fault)
{
	if (cmd->context >= e->caps.contexts)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ARG, EMBENG_NO_INDEX, 0,
				 cmd->context, e->caps.contexts);
	if (e->contexts[cmd->context])
		return fault_set(fault, EMBENG_STATUS_MODEL_BUSY, EMBENG_FIELD_ARG, EMBENG_NO_INDEX,
				 0, cmd->context, 0);
	if (!cmd->count || cmd->count > e->caps.regions)
		return fault_set(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_DATA, EMBENG_NO_INDEX, 0,
				 cmd->count, e->caps.regions);
	return EMBENG_STATUS_OK;
}

u16 context_create(struct engine *e, const struct embeng_admin_cmd *cmd, struct fault *fault)
{
	u16 status = check_context_number(e, cmd, fault);
	struct context *c;

	if (status)
		return status;
	c = port_alloc(sizeof(*c));
	if (!c)
		return fault_set(fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_NONE, EMBENG_NO_INDEX,
				 0, sizeof(*c), 0);
	c->engine = e;
	c->number = cmd->context;
	status = region_table_map(c, cmd->address, cmd->count);
	if (status) {
		port_free(c);
		return fault_set(fault, status, EMBENG_FIELD_DATA, EMBENG_NO_INDEX, 0, cmd->address,
				 0);
	}
	e->contexts[c->number] = c;
	e->context_count++;
	event_of_context(c, EMBENG_EVENT_CONTEXT_MADE, cmd->count);
	return EMBENG_STATUS_OK;
}

void context_kill(struct context *c)
{
	struct engine *e = c->engine;
	u32 i;

	__atomic_store_n(&c->dying, true, __ATOMIC_RELAXED);
	for (i = 0; i < e->order_count; i++) {
		if (e->order[i]->context == c)
			queue_kill(e->order[i], true);
	}
}

bool context_reap(struct context *c)
{
	struct engine *e = c->engine;
	bool gone = true;
	u32 i;

	/* Backwards: a queue that goes takes its place in the order with it. */
	for (i = e->order_count; i-- > 0;) {
		if (e->order[i]->context == c && !queue_reap(e->order[i]))
			gone = false;
	}
	if (!gone || c->in_flight || c->accesses)
		return false;
	model_destroy(c);
	context_pcsr_free(c);
	context_exchange_free(c);
	region_table_unmap(c);
	e->contexts[c->number] = NULL;
	e->context_count--;
	event_of_context(c, EMBENG_EVENT_CONTEXT_ENDED, 0);
	port_free(c);
	return true;
}
