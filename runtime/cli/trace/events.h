/* SPDX-License-Identifier: MIT */
/* The driver's trace events, from the text of the kernel's trace file. */
#ifndef CLI_TRACE_EVENTS_H
#define CLI_TRACE_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum trace_kind {
	TRACE_SUBMIT,	/* commands were written to a ring */
	TRACE_TAKE,	/* the doorbell was rung for them */
	TRACE_COMMAND,	/* one of the commands that were written */
	TRACE_COMPLETE, /* the driver saw a completion */
	TRACE_OTHER,
};

/**
 * struct trace_event - one line; kmod/trace.h says what the numbers are
 * @time_ns: when, by the clock of the trace
 */
struct trace_event {
	enum trace_kind kind;
	uint64_t time_ns;
	uint64_t context, queue, queue_kind, index, count, opcode, status, flags, cookie, step,
		after, device_ns;
};

/**
 * struct trace_events - events in their order
 * @lost: events that the kernel says it has lost
 * @odd: lines of the driver's events that could not be read
 */
struct trace_events {
	struct trace_event *list;
	size_t count, capacity, lost, odd;
};

/**
 * trace_parse() - read the text of a trace file; events of others are left out
 * @text: @length bytes
 *
 * Return: 0 or -ENOMEM. trace_free() frees the list either way.
 */
int trace_parse(struct trace_events *events, const char *text, size_t length);

void trace_free(struct trace_events *events);

#endif
