// SPDX-License-Identifier: MIT
/*
 * Shows the event log of a device from a copy of its registers. It is apart from regs.c, which
 * reads the copy, because the log is not a list of registers.
 */
#include "events.h"

#include <string.h>

#include "embeng_regs.h"

static const struct {
	const char *name, *words;
} kinds[] = {
#define KIND(name, value, words) [value] = {#name, words},
	EMBENG_EVENT_TABLE(KIND)
#undef KIND
};

static bool is_known(const struct embeng_event *event)
{
	return event->kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[event->kind].name;
}

static void print_event(const struct embeng_event *event)
{
	printf("%u  %llu.%09llu  ", event->number, event->time_ns / 1000000000,
	       event->time_ns % 1000000000);
	if (is_known(event))
		printf("%s", kinds[event->kind].name);
	else
		printf("%u", event->kind);
	if (event->context != EMBENG_NO_INDEX)
		printf("  context %u", event->context);
	if (event->queue != EMBENG_EVENT_NO_QUEUE)
		printf("  queue %u", event->queue);
	printf("  detail %u  value %llu\n", event->detail, event->value);
}

static struct json_object *document_event(const struct embeng_event *event)
{
	struct json_object *row = json_object_new_object();

	json_add_number(row, "number", event->number);
	json_add_number(row, "time_ns", event->time_ns);
	json_add_number(row, "kind", event->kind);
	json_add_text(row, "name", is_known(event) ? kinds[event->kind].name : "");
	json_add_text(row, "meaning", is_known(event) ? kinds[event->kind].words : "");
	if (event->context != EMBENG_NO_INDEX)
		json_add_number(row, "context", event->context);
	if (event->queue != EMBENG_EVENT_NO_QUEUE)
		json_add_number(row, "queue", event->queue);
	json_add_number(row, "detail", event->detail);
	json_add_number(row, "value", event->value);
	return row;
}

int events_show(const struct output *out, const char *page)
{
	struct json_object *rows = out->json ? json_object_new_array() : NULL, *document;
	struct embeng_event_log log;

	memcpy(&log, page + EMBENG_EVENT_LOG, sizeof(log));
	for (uint32_t n = log.next - EMBENG_EVENTS; n != log.next; n++) {
		const struct embeng_event *event = &log.events[n % EMBENG_EVENTS];

		if (log.magic != EMBENG_EVENT_MAGIC || !n || event->number != n)
			continue;
		if (rows)
			json_object_array_add(rows, document_event(event));
		else
			print_event(event);
	}
	if (!rows)
		return CLI_OK;
	document = json_document(out);
	json_object_object_add(document, "events", rows);
	return json_emit(document);
}
