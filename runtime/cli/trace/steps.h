/* SPDX-License-Identifier: MIT */
/* Commands with the times of their stages, made of trace events, and the steps that they belong to. */
#ifndef CLI_TRACE_STEPS_H
#define CLI_TRACE_STEPS_H

#include <stdbool.h>

#include "events.h"

enum trace_stage {
	TRACE_WAIT,   /* in the ring, until the doorbell: the command waits for fences */
	TRACE_ACCEPT, /* LOOKUP: until the device has read the ids */
	TRACE_RUN,    /* until the device is done */
	TRACE_NOTICE, /* until the driver or the library saw the completion */
	TRACE_STAGES,
};

extern const char *const trace_stage_names[TRACE_STAGES];

/**
 * struct trace_command - a command from its submission to its completion
 * @step: step that it belongs to, or 0
 * @submitted, @seen: when it was written to the ring, and when it was seen to be done
 * @stage_ns: length of each stage; they add up to @seen - @submitted
 * @accepted: it has the stage TRACE_ACCEPT
 * @done: false if it is not finished in the trace, or began before it
 */
struct trace_command {
	uint64_t context, queue, queue_kind, index, opcode, cookie, step, status;
	uint64_t submitted, doorbell, accepted_seen, seen, accepted_device_ns, done_device_ns;
	uint64_t stage_ns[TRACE_STAGES];
	bool accepted, done;
};

/**
 * struct trace_steps - commands by context, step and time of submission
 * @unfinished: commands of the list that are not done
 * @strange: completions of commands whose submission is not in the trace
 */
struct trace_steps {
	struct trace_command *list;
	size_t count, unfinished, strange;
};

/* Return: 0 or -ENOMEM. trace_steps_free() frees the list either way. */
int trace_steps_make(struct trace_steps *steps, const struct trace_events *events);

void trace_steps_free(struct trace_steps *steps);

/* Number of commands from @first on that belong to the same step of the same context. */
size_t trace_steps_group(const struct trace_steps *steps, size_t first);

const char *trace_opcode_name(uint64_t opcode, char text[32]);
const char *trace_status_name(uint64_t status, char text[32]);

#endif
