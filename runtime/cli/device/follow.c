// SPDX-License-Identifier: MIT
/*
 * The verb `embeng events`: shows the event log of a device in words, and follows it.
 *
 * The device does not interrupt for an event of its log. So a follower sleeps until the driver sends
 * a uevent, as for each reset, or for a second, and then reads what is new in the log.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "../frame/command.h"
#include "device.h"
#include "events.h"
#include "uevents.h"

#define LOOK_MS 1000

static const char doc[] =
	"Show what happened to a device, oldest event first, from the device's own log.\v"
	"Examples:\n"
	"  embeng events                    the log of the first device\n"
	"  embeng events --follow           and what happens from now on, until it is interrupted\n"
	"  embeng events --follow --json    an event as a document on each line\n\n"
	"With --follow the resets that the driver makes are shown as well, with their cause. The\n"
	"log is looked at every second and after each reset. For a device behind the driver this\n"
	"needs the rights of an administrator.";

static const struct argp_option options[] = {
	{"device", 'd', "DEVICE", 0, "The device, by a name that `embeng list` shows", 0},
	{"follow", 'f', 0, 0, "Go on with events that come, until it is interrupted", 0},
	{0},
};

struct events_call {
	const char *device;
	bool follow;
};

static error_t parse_events_option(int key, char *arg, struct argp_state *state)
{
	struct events_call *call = state->input;

	switch (key) {
	case 'd':
		call->device = arg;
		return 0;
	case 'f':
		call->follow = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "events takes no argument, given '%s'; name a device with -d",
			   arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/**
 * struct events_listing - events on their way to the output
 * @rows: document that they are collected in; NULL: each one is shown at once
 * @code: exit code of an output that takes no more
 */
struct events_listing {
	const struct output *out;
	struct json_object *rows;
	int code;
};

static struct json_object *document_log_event(const struct embeng_event *event)
{
	struct json_object *document = event_document(event);
	char words[EVENT_WORDS];

	json_add_text(document, "words", event_words(event, words));
	return document;
}

static void print_log_event(const struct embeng_event *event)
{
	char words[EVENT_WORDS];

	printf("%5u  %llu.%09llu  %-17s", event->number, event->time_ns / 1000000000,
	       event->time_ns % 1000000000, event_name(event) ? event_name(event) : "unknown");
	if (event->context != EMBENG_NO_INDEX)
		printf("  context %u", event->context);
	if (event->queue != EMBENG_EVENT_NO_QUEUE)
		printf("  queue %u", event->queue);
	printf("  %s\n", event_words(event, words));
}

/* With --follow each document has the schema, since it stands alone. */
static void emit_alone(struct events_listing *listing, const char *source,
		       struct json_object *event)
{
	struct json_object *document = json_document(listing->out);

	json_add_text(document, "source", source);
	json_object_object_add(document, "event", event);
	listing->code = json_emit_line(document);
}

static void list_log_event(void *arg, const struct embeng_event *event)
{
	struct events_listing *listing = arg;

	if (listing->code)
		return;
	if (listing->rows)
		json_object_array_add(listing->rows, document_log_event(event));
	else if (listing->out->json)
		emit_alone(listing, "device", document_log_event(event));
	else
		print_log_event(event);
}

static void list_uevent(struct events_listing *listing, const struct uevent *uevent)
{
	struct timespec now;
	struct json_object *event;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!listing->out->json) {
		printf("       %lld.%09ld  reset: %s  %s; %llu resets have lost contexts so far\n",
		       (long long)now.tv_sec, now.tv_nsec, uevent->rung, uevent->words,
		       (unsigned long long)uevent->reset);
		return;
	}
	event = json_object_new_object();
	json_add_number(event, "seen_ns",
			(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	json_add_text(event, "rung", uevent->rung);
	json_add_text(event, "cause", uevent->cause);
	json_add_text(event, "words", uevent->words);
	json_add_number(event, "resets", uevent->reset);
	emit_alone(listing, "driver", event);
}

/* Return: false if the output takes no more. */
static bool show_news(const char *page, struct events_place *place, struct events_listing *listing)
{
	uint64_t lost = place->lost;

	events_each(page, place, list_log_event, listing);
	if (place->lost > lost)
		fprintf(stderr, "embeng events: %llu events came too fast and are lost\n",
			(unsigned long long)(place->lost - lost));
	if (!listing->out->json)
		listing->code = output_finish(listing->code);
	return !listing->code;
}

static int follow_events(const struct events_call *call, const char *address,
			 struct events_listing *listing)
{
	struct uevents *uevents = uevents_open();
	char page[EMBENG_REGISTERS_BYTES];
	struct events_place place = {0};
	struct uevent uevent;
	int err;

	do {
		err = embeng_registers_read(call->device, page);
		if (err || !show_news(page, &place, listing))
			break;
		if (uevents_wait(uevents, LOOK_MS, &uevent) && !strcmp(uevent.address, address))
			list_uevent(listing, &uevent);
	} while (!listing->code);
	uevents_close(uevents);
	return err ? output_library_failure(listing->out, err, err == -ENODEV ? device_hint : NULL)
		   : listing->code;
}

static int show_log(const struct events_call *call, const char *name,
		    struct events_listing *listing)
{
	char page[EMBENG_REGISTERS_BYTES];
	struct events_place place = {0};
	struct json_object *document;
	int err = embeng_registers_read(call->device, page);

	if (err)
		return output_library_failure(listing->out, err,
					      err == -ENODEV ? device_hint : NULL);
	if (listing->out->json)
		listing->rows = json_object_new_array();
	if (!show_news(page, &place, listing) || !listing->rows)
		return listing->code;
	document = json_document(listing->out);
	json_add_text(document, "device", name);
	json_object_object_add(document, "events", listing->rows);
	return json_emit(document);
}

int cmd_events(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_events_option, .doc = doc};
	struct embeng_device_info info = EMBENG_INIT(embeng_device_info);
	struct output out = {.verb = "events"};
	struct events_listing listing = {.out = &out};
	struct events_call call = {0};
	int code = command_parse(&argp, argc, argv, &out, &call);

	if (code)
		return code;
	/* A device that does not run has a log, too: the read of its registers says what is wrong. */
	(void)embeng_device_info(call.device, &info);
	if (call.follow && !strcmp(info.kind, "soft"))
		return output_fail(
			&out, CLI_UNSUPPORTED, ENOTSUP,
			"leave out --follow, or name a device behind the driver",
			"a soft device is made for each call, so that nothing more happens "
			"to it");
	return call.follow ? follow_events(&call, info.address, &listing)
			   : show_log(&call, info.name, &listing);
}
