// SPDX-License-Identifier: MIT
/*
 * The event log in BAR 0, which says what happened to the device. It lies in memory that resets
 * leave alone. It is read while it is written, so a record has no number while it changes.
 *
 * Called with engine->lock held, or before anyone else knows the device.
 */
#include "device.h"

static struct embeng_event_log *log_of(struct engine *e)
{
	return reg_at(e, EMBENG_EVENT_LOG);
}

void event_open(struct engine *e)
{
	struct embeng_event_log *log = log_of(e);

	if (EMBENG_LOAD_ACQUIRE(&log->magic) == EMBENG_EVENT_MAGIC)
		return;
	memset(log, 0, sizeof(*log));
	log->record_bytes = sizeof(struct embeng_event);
	log->capacity = EMBENG_EVENTS;
	log->next = 1;
	EMBENG_STORE_RELEASE(&log->magic, EMBENG_EVENT_MAGIC);
}

void event(struct engine *e, u32 kind, const struct event *what)
{
	struct embeng_event_log *log = log_of(e);
	u32 number = log->next ? log->next : 1;
	struct embeng_event *record = &log->events[number % EMBENG_EVENTS];

	EMBENG_STORE_RELEASE(&record->number, 0);
	EMBENG_FULL_BARRIER();
	record->kind = (u16)kind;
	record->queue = (u16)what->queue;
	record->time_ns = port_now_ns();
	record->context = what->context;
	record->detail = what->detail;
	record->value = what->value;
	EMBENG_STORE_RELEASE(&record->number, number);
	EMBENG_STORE_RELEASE(&log->next, number + 1);
}

void event_of_device(struct engine *e, u32 kind, u32 detail, u64 value)
{
	event(e, kind,
	      &(struct event){ .context = EMBENG_NO_INDEX,
			       .queue = EMBENG_EVENT_NO_QUEUE,
			       .detail = detail,
			       .value = value });
}

void event_of_context(const struct context *c, u32 kind, u64 value)
{
	event(c->engine, kind,
	      &(struct event){
		      .context = c->number, .queue = EMBENG_EVENT_NO_QUEUE, .value = value });
}

void event_of_queue(const struct queue *q, u32 kind, u32 detail, u64 value)
{
	event(q->engine, kind,
	      &(struct event){ .context = q->context ? q->context->number : EMBENG_NO_INDEX,
			       .queue = q->number,
			       .detail = detail,
			       .value = value });
}
