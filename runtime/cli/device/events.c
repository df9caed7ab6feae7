// SPDX-License-Identifier: MIT
/*
 * Shows the event log of a device from a copy of its registers. It is apart from regs.c, which
 * reads the copy, because the log is not a list of registers.
 */
#include "events.h"

#include <string.h>

#include "../frame/exit.h"

static const struct {
	const char *name, *words;
} kinds[] = {
#define KIND(name, value, words) [value] = {#name, words},
	EMBENG_EVENT_TABLE(KIND)
#undef KIND
};

const char *event_name(const struct embeng_event *event)
{
	return event->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[event->kind].name : NULL;
}

static void print_event(const struct embeng_event *event)
{
	printf("%u  %llu.%09llu  ", event->number, event->time_ns / 1000000000,
	       event->time_ns % 1000000000);
	if (event_name(event))
		printf("%s", event_name(event));
	else
		printf("%u", event->kind);
	if (event->context != EMBENG_NO_INDEX)
		printf("  context %u", event->context);
	if (event->queue != EMBENG_EVENT_NO_QUEUE)
		printf("  queue %u", event->queue);
	printf("  detail %u  value %llu\n", event->detail, event->value);
}

struct json_object *event_document(const struct embeng_event *event)
{
	struct json_object *row = json_object_new_object();

	json_add_number(row, "number", event->number);
	json_add_number(row, "time_ns", event->time_ns);
	json_add_number(row, "kind", event->kind);
	json_add_text(row, "name", event_name(event) ? event_name(event) : "");
	json_add_text(row, "meaning", event_name(event) ? kinds[event->kind].words : "");
	if (event->context != EMBENG_NO_INDEX)
		json_add_number(row, "context", event->context);
	if (event->queue != EMBENG_EVENT_NO_QUEUE)
		json_add_number(row, "queue", event->queue);
	json_add_number(row, "detail", event->detail);
	json_add_number(row, "value", event->value);
	return row;
}

/* How many events a log has that were not read. */
static uint32_t count_unread(const struct embeng_event_log *log, struct events_place *place)
{
	uint32_t unread = log->next - 1 - place->last;

	/* A log that goes back was cleared: all of it is new. */
	if (!place->begun || unread > INT32_MAX)
		return EMBENG_EVENTS;
	if (unread <= EMBENG_EVENTS)
		return unread;
	place->lost += unread - EMBENG_EVENTS;
	return EMBENG_EVENTS;
}

void events_each(const char *page, struct events_place *place, events_fn fn, void *arg)
{
	struct embeng_event_log log;
	uint32_t unread;

	memcpy(&log, page + EMBENG_EVENT_LOG, sizeof(log));
	if (log.magic != EMBENG_EVENT_MAGIC)
		return;
	unread = count_unread(&log, place);
	place->begun = true;
	place->last = log.next - 1;
	for (uint32_t n = log.next - unread; n != log.next; n++) {
		const struct embeng_event *event = &log.events[n % EMBENG_EVENTS];

		if (n && event->number == n)
			fn(arg, event);
	}
}

static void show_event(void *arg, const struct embeng_event *event)
{
	struct json_object *rows = arg;

	if (rows)
		json_object_array_add(rows, event_document(event));
	else
		print_event(event);
}

int events_show(const struct output *out, const char *page)
{
	struct json_object *rows = out->json ? json_object_new_array() : NULL, *document;
	struct events_place place = {0};

	events_each(page, &place, show_event, rows);
	if (!rows)
		return CLI_OK;
	document = json_document(out);
	json_object_object_add(document, "events", rows);
	return json_emit(document);
}
