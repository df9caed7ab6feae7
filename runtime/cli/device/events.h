/* SPDX-License-Identifier: MIT */
/* The event log of a device. */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include "embeng_regs.h"

#include "../frame/output.h"

/* Prints the event log of a copy of the registers, oldest event first. Return: an exit code. */
int events_show(const struct output *out, const char *page);

typedef void (*events_fn)(void *arg, const struct embeng_event *event);

/**
 * struct events_place - how far a log was read
 * @begun: some of it was read
 * @last: number of the newest event that was read
 * @lost: events that were overwritten before they were read
 */
struct events_place {
	bool begun;
	uint32_t last;
	uint64_t lost;
};

/**
 * events_each() - call @fn for the events of a log that were not read yet, oldest first
 * @page: copy of the registers; one that has no log, as during a reset, has no events
 *
 * A log that loss of power has cleared is read from its beginning.
 */
void events_each(const char *page, struct events_place *place, events_fn fn, void *arg);

#define EVENT_WORDS 192

/* The name of an event's kind, "BOOT"; NULL if this version does not know the kind. */
const char *event_name(const struct embeng_event *event);

/* Says in words what an event means. Return: @words. */
const char *event_words(const struct embeng_event *event, char words[EVENT_WORDS]);

/* An event as JSON. */
struct json_object *event_document(const struct embeng_event *event);

#endif
