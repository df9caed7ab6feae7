// SPDX-License-Identifier: MIT
/*
 * The commands of the admin queue, queue 0: the driver creates and destroys contexts and queues
 * here and invalidates regions. A command whose object is still in use cannot end at once. It is
 * kept in the engine's list of pending commands and tried again at each look at the device.
 *
 * Called with engine->lock held. A pending command is allocated before it is taken out of the ring,
 * and freed when its completion is posted or when a reset drops the list.
 */
#include "../queue/internal.h"

static u16 refuse_admin_command(struct fault *fault, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
}

static void post_admin_completion(struct engine *e, const struct embeng_admin_cmd *cmd,
				  const struct fault *fault)
{
	struct embeng_cqe cqe = {
		.cookie = cmd->cookie,
		.status = fault->status,
		.flags = EMBENG_CQE_DONE,
		.field = fault->field,
		.feature = EMBENG_NO_INDEX,
		.element = fault->element,
		.value = fault->value,
		.limit = fault->limit,
		.timestamp = port_now_ns(),
	};

	ring_post(e->queues[0], &cqe, 0);
}

static struct context *find_context(struct engine *e, u32 number)
{
	return number < e->caps.contexts ? e->contexts[number] : NULL;
}

static struct queue *find_queue(struct engine *e, u32 number)
{
	return number && number < e->caps.queues ? e->queues[number] : NULL;
}

/*
 * True when what it asks for is done; until then it is asked again. An object that is not dying is
 * a new one: the one that the command was for has gone and left its number.
 */
static bool try_finish(struct engine *e, const struct embeng_admin_cmd *cmd)
{
	struct context *c = find_context(e, cmd->context);
	struct queue *q = find_queue(e, cmd->queue);

	switch (cmd->opcode) {
	case EMBENG_ADMIN_CONTEXT_DESTROY:
		return !c || !c->dying || context_reap(c);
	case EMBENG_ADMIN_QUEUE_DESTROY:
		return !q || !q->dying || queue_reap(q);
	case EMBENG_ADMIN_INVALIDATE:
		return !c || region_invalidate(c, cmd->index);
	}
	return true;
}

static u16 check_reserved(const struct embeng_admin_cmd *cmd, struct fault *fault)
{
	u32 flags = 0, any;

	if (cmd->opcode > EMBENG_ADMIN_INVALIDATE)
		return refuse_admin_command(fault, EMBENG_STATUS_OPCODE, EMBENG_FIELD_OPCODE,
					    cmd->opcode, EMBENG_ADMIN_INVALIDATE);
	if (cmd->opcode == EMBENG_ADMIN_QUEUE_CREATE)
		flags = EMBENG_ADMIN_QUEUE_AT;
	else if (cmd->opcode == EMBENG_ADMIN_QUEUE_DESTROY)
		flags = EMBENG_ADMIN_QUEUE_HUNG;
	any = cmd->reserved | (cmd->flags & ~flags);
	if (!cmd->flags)
		any |= cmd->sq_index | cmd->cq_index;
	if (any)
		return refuse_admin_command(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
					    any, 0);
	return EMBENG_STATUS_OK;
}

static u16 destroy_context(struct engine *e, const struct embeng_admin_cmd *cmd,
			   struct fault *fault)
{
	struct context *c = find_context(e, cmd->context);

	if (!c)
		return refuse_admin_command(fault, EMBENG_STATUS_KEY, EMBENG_FIELD_ARG,
					    cmd->context, e->caps.contexts);
	if (!c->dying)
		context_kill(c);
	return EMBENG_STATUS_OK;
}

static u16 destroy_queue(struct engine *e, const struct embeng_admin_cmd *cmd, struct fault *fault)
{
	struct queue *q = find_queue(e, cmd->queue);

	if (!q)
		return refuse_admin_command(fault, EMBENG_STATUS_KEY, EMBENG_FIELD_ARG, cmd->queue,
					    e->caps.queues);
	if (q->dying)
		return EMBENG_STATUS_OK;
	q->hung_ms = cmd->flags & EMBENG_ADMIN_QUEUE_HUNG ? cmd->cq_index : 0;
	q->hung = cmd->flags & EMBENG_ADMIN_QUEUE_HUNG;
	queue_kill(q, false);
	return EMBENG_STATUS_OK;
}

static u16 check_invalidate(struct engine *e, const struct embeng_admin_cmd *cmd,
			    struct fault *fault)
{
	struct context *c = find_context(e, cmd->context);

	if (!c)
		return refuse_admin_command(fault, EMBENG_STATUS_KEY, EMBENG_FIELD_ARG,
					    cmd->context, e->caps.contexts);
	if (cmd->index >= c->region_count)
		return refuse_admin_command(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ARG,
					    cmd->index, c->region_count);
	return EMBENG_STATUS_OK;
}

static u16 begin_admin_command(struct engine *e, const struct embeng_admin_cmd *cmd,
			       struct fault *fault)
{
	u16 status = check_reserved(cmd, fault);

	if (status)
		return status;
	switch (cmd->opcode) {
	case EMBENG_ADMIN_CONTEXT_CREATE:
		return context_create(e, cmd, fault);
	case EMBENG_ADMIN_CONTEXT_DESTROY:
		return destroy_context(e, cmd, fault);
	case EMBENG_ADMIN_QUEUE_CREATE:
		return queue_create(e, cmd, fault);
	case EMBENG_ADMIN_QUEUE_DESTROY:
		return destroy_queue(e, cmd, fault);
	case EMBENG_ADMIN_INVALIDATE:
		return check_invalidate(e, cmd, fault);
	}
	return EMBENG_STATUS_OK;
}

static int retry_pending(struct engine *e)
{
	static const struct fault fine;
	struct pending **link = &e->pending, *p;
	int moved = 0;

	while ((p = *link)) {
		if (!try_finish(e, &p->cmd)) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		e->pending_count--;
		post_admin_completion(e, &p->cmd, &fine);
		port_free(p);
		moved = 1;
	}
	return moved;
}

/* @p: made before the command was taken, so that nothing begun can be forgotten */
static void handle_admin_command(struct engine *e, struct pending *p)
{
	struct fault fault = { .status = EMBENG_STATUS_OK };
	u16 status;

	status = begin_admin_command(e, &p->cmd, &fault);
	record_admin(e, &p->cmd, status);
	if (!status && !try_finish(e, &p->cmd)) {
		p->next = e->pending;
		e->pending = p;
		e->pending_count++;
		return;
	}
	post_admin_completion(e, &p->cmd, &fault);
	port_free(p);
}

int admin_step(struct engine *e)
{
	struct queue *q = e->queues[0];
	struct pending *p;
	enum ring_look look;
	int moved;

	if (!q || e->resetting)
		return 0;
	moved = retry_pending(e);
	look = ring_look(q);
	if (look == RING_STOPPED)
		admin_fault(e);
	if (look != RING_COMMAND || ring_space(q) < e->pending_count + 1)
		return moved;
	p = port_alloc(sizeof(*p));
	if (!p)
		return moved;
	ring_copy(q, &p->cmd);
	ring_consume(q);
	handle_admin_command(e, p);
	return 1;
}
