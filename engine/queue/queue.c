// SPDX-License-Identifier: MIT
/*
 * Creates queues, and keeps the list of a queue's commands from the oldest to the newest. How a
 * queue ends is in queue_end.c.
 *
 * Called with engine->lock held. A queue owns its mapping of the ring and a pool of commands as
 * large as it may have in flight, and both live until queue_free().
 */
#include "internal.h"

static void *doorbell_of(struct engine *e, u32 number)
{
	return (u8 *)e->config.doorbells + (u64)number * e->config.doorbell_stride;
}

static bool map_ring(struct engine *e, struct queue *q, u64 address)
{
	struct embeng_segment segment = { address, q->layout.size };

	if (address % 64)
		return false;
	q->ring = port_dma_map(e->config.host, &segment, 1, segment.length);
	return q->ring;
}

/* No report of an earlier queue in this memory holds any longer. */
static void forget_report(struct embeng_queue_report *report)
{
	embeng_report_begin(&report->epoch, 0);
	EMBENG_STORE_RELEASE(&report->state, EMBENG_QUEUE_RUNNING);
	EMBENG_STORE_RELEASE(&report->wait, EMBENG_WAIT_NOTHING);
	EMBENG_STORE_RELEASE(&report->tail, 0);
	EMBENG_STORE_RELEASE(&report->cq_head, 0);
	embeng_report_end(&report->epoch, 0);
}

/*
 * A new queue begins where its doorbell stands, so that a doorbell can be used again. One
 * that goes on may have a program that reads its words at this moment.
 */
static void start_queue(struct queue *q, const struct embeng_admin_cmd *cmd)
{
	struct embeng_ring_header *header = queue_header(q);
	bool goes_on = cmd->flags & EMBENG_ADMIN_QUEUE_AT;

	if (!goes_on)
		memset(header, 0, sizeof(*header));
	q->busy_ns = header->busy_ns;
	q->ids = header->ids;
	q->rows = header->rows;
	q->commands = header->commands;
	memcpy(q->waits, header->waits, sizeof(q->waits));
	q->progress = header->progress;
	q->sq_head = goes_on ? cmd->sq_index : embeng_observe_tail(&q->doorbell->sq_tail);
	q->cq_tail = goes_on ? cmd->cq_index : embeng_observe_cq_head(&q->doorbell->cq_head);
	q->armed = EMBENG_LOAD_ACQUIRE(&q->doorbell->armed);
	q->completed = q->sq_head;
	q->tail_seen = q->sq_head;
	q->cq_head_seen = q->cq_tail;
	q->sent = q->cq_tail;
	forget_report(&header->report);
	embeng_publish_sq_head(&header->sq_head, q->sq_head);
	embeng_publish_cq_tail(&header->cq_tail, q->cq_tail);
	EMBENG_STORE_RELEASE(&header->sent, q->sent);
	EMBENG_STORE_RELEASE(&header->done, q->completed);
}

u16 queue_new(struct engine *e, const struct embeng_admin_cmd *cmd, struct queue **out)
{
	struct queue *q = port_alloc(sizeof(*q));

	if (!q)
		return EMBENG_STATUS_NO_MEMORY;
	q->engine = e;
	q->number = cmd->queue;
	q->layout = embeng_ring_layout(cmd->sq_entries, cmd->cq_entries,
				       EMBENG_RING_MAPPED | EMBENG_RING_REPORTS |
					       EMBENG_RING_HEALTH | EMBENG_RING_COUNTS);
	q->doorbell = doorbell_of(e, q->number);
	if (!map_ring(e, q, cmd->address)) {
		queue_free(q);
		return EMBENG_STATUS_KEY;
	}
	start_queue(q, cmd);
	*out = q;
	return EMBENG_STATUS_OK;
}

void queue_free(struct queue *q)
{
	if (q->ring)
		port_dma_unmap(q->engine->config.host, q->ring, q->layout.size);
	port_free(q->pool);
	port_free(q);
}

static bool make_pool(struct queue *q, u32 count)
{
	void *charged = port_charge_begin(q->ring);
	u32 i;

	q->pool = port_alloc(count * sizeof(struct command));
	port_charge_end(charged);
	if (!q->pool)
		return false;
	for (i = 0; i < count; i++) {
		q->pool[i].next = q->free;
		q->free = &q->pool[i];
	}
	q->accept_limit = count;
	return true;
}

static u16 refuse_queue(struct fault *fault, u16 status, u32 field, u64 value, u64 limit)
{
	return fault_set(fault, status, field, EMBENG_NO_INDEX, 0, value, limit);
}

static bool is_ring_size(u32 entries, u32 least, u32 most)
{
	return entries && !(entries & (entries - 1)) && entries >= least && entries <= most;
}

static u16 check_create(struct engine *e, const struct embeng_admin_cmd *cmd, struct fault *fault)
{
	u32 most = EMBENG_SQ_ENTRIES_MAX, least;

	if (cmd->context >= e->caps.contexts || !e->contexts[cmd->context] ||
	    e->contexts[cmd->context]->dying)
		return refuse_queue(fault, EMBENG_STATUS_KEY, EMBENG_FIELD_ARG, cmd->context, 0);
	if (!cmd->queue || cmd->queue >= e->caps.queues)
		return refuse_queue(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_ARG, cmd->queue,
				    e->caps.queues);
	if (e->queues[cmd->queue])
		return refuse_queue(fault, EMBENG_STATUS_MODEL_BUSY, EMBENG_FIELD_ARG, cmd->queue,
				    0);
	if (cmd->kind < EMBENG_QUEUE_INPUT || cmd->kind > EMBENG_QUEUE_TRANSFER)
		return refuse_queue(fault, EMBENG_STATUS_QUEUE_KIND, EMBENG_FIELD_FLAGS, cmd->kind,
				    EMBENG_QUEUE_TRANSFER);
	if (cmd->priority > 3)
		return refuse_queue(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_FLAGS, cmd->priority,
				    3);
	if (cmd->vector >= e->caps.vectors)
		return refuse_queue(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_FLAGS, cmd->vector,
				    e->caps.vectors);
	if (cmd->replica >= e->caps.replicas ||
	    (cmd->kind == EMBENG_QUEUE_TRANSFER && cmd->replica))
		return refuse_queue(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_FLAGS, cmd->replica,
				    cmd->kind == EMBENG_QUEUE_TRANSFER ? 0 : e->caps.replicas - 1);
	if (!is_ring_size(cmd->sq_entries, 1, most))
		return refuse_queue(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_DATA, cmd->sq_entries,
				    most);
	least = (u32)embeng_completions_least(cmd->kind, cmd->sq_entries);
	if (!is_ring_size(cmd->cq_entries, least, 2 * most))
		return refuse_queue(fault, EMBENG_STATUS_COUNT, EMBENG_FIELD_DATA, cmd->cq_entries,
				    2 * most);
	return EMBENG_STATUS_OK;
}

static bool comes_before(const struct queue *a, const struct queue *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority;
	return a->number < b->number;
}

static void enter_order(struct engine *e, struct queue *q)
{
	u32 at = e->order_count++;

	for (; at && comes_before(q, e->order[at - 1]); at--)
		e->order[at] = e->order[at - 1];
	e->order[at] = q;
}

u16 queue_create(struct engine *e, const struct embeng_admin_cmd *cmd, struct fault *fault)
{
	u16 status = check_create(e, cmd, fault);
	bool ahead = cmd->kind == EMBENG_QUEUE_INPUT || cmd->kind == EMBENG_QUEUE_GRADIENT;
	struct queue *q;

	if (status)
		return status;
	status = queue_new(e, cmd, &q);
	if (status)
		return refuse_queue(fault, status, EMBENG_FIELD_DATA, cmd->address, 0);
	if (!make_pool(q, ahead ? e->caps.step_depth : 1)) {
		queue_free(q);
		return refuse_queue(fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_NONE, 0, 0);
	}
	q->context = e->contexts[cmd->context];
	q->kind = cmd->kind;
	q->priority = cmd->priority;
	q->replica = cmd->replica;
	q->vector = cmd->vector;
	e->queues[q->number] = q;
	enter_order(e, q);
	return EMBENG_STATUS_OK;
}

struct command *queue_take(struct queue *q)
{
	struct command *command = q->free;

	q->free = command->next;
	command->next = NULL;
	if (q->newest)
		q->newest->next = command;
	else
		q->oldest = command;
	q->newest = command;
	q->accepted++;
	q->context->in_flight++;
	return command;
}

void queue_drop(struct queue *q, struct command *command)
{
	struct command **link = &q->oldest, *before = NULL;

	while (*link != command) {
		before = *link;
		link = &before->next;
	}
	*link = command->next;
	if (q->newest == command)
		q->newest = before;
	command->next = q->free;
	q->free = command;
	q->accepted--;
	q->context->in_flight--;
	q->completed = q->oldest ? q->oldest->index : q->sq_head;
	ring_publish_done(q);
}

void busy_with(struct queue *q, u64 passed_ns)
{
	busy_core(q->engine, 0, passed_ns);
	q->busy_ns += passed_ns;
	EMBENG_STORE_RELEASE(&queue_header(q)->busy_ns, q->busy_ns);
}

void queue_count_command(const struct command *command)
{
	struct queue *q = command->queue;
	struct embeng_ring_header *header = queue_header(q);

	q->ids += command->ids;
	q->rows += command->rows;
	q->commands++;
	if (q->engine->cut_off)
		return;
	EMBENG_STORE_RELEASE(&header->ids, q->ids);
	EMBENG_STORE_RELEASE(&header->rows, q->rows);
	EMBENG_STORE_RELEASE(&header->commands, q->commands);
}

void queue_count_wait(struct queue *q)
{
	u32 wait = q->wait.what - EMBENG_WAIT_LOOKUP;

	reg_count(q->engine, EMBENG_REG_COUNT_WAITS, 1);
	if (wait >= EMBENG_WAITS)
		return;
	reg_count(q->engine, EMBENG_REG_COUNT_WAITS_LOOKUP + 8 * wait, 1);
	q->waits[wait]++;
	if (q->engine->cut_off)
		return;
	EMBENG_STORE_RELEASE(&queue_header(q)->waits[wait], q->waits[wait]);
}
