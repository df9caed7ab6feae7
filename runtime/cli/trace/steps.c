// SPDX-License-Identifier: MIT
/*
 * Follows each command through the events of a trace. A command is known by its context, its queue
 * and its index there, and belongs to the step of its context that it names.
 *
 * The device writes into a completion when it was done, by a clock of its own. The driver, or the
 * library, sees a completion some time later. The smallest such distance of a context is taken as the
 * distance of the clocks, so that the fastest notice counts as none; every other time of the device is
 * bounded by what was seen before and after it. Contexts may be on devices with different clocks.
 */
#include "steps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../decode/words.h"
#include "embeng_engine.h"

/* Older commands than this many are done, and are not looked for: a file may be anybody's. */
#define SEARCH_BACK 8192

const char *const trace_stage_names[TRACE_STAGES] = {"wait", "accept", "run", "notice"};

const char *trace_opcode_name(uint64_t opcode, char text[32])
{
	const char *word = word_opcode(opcode);

	if (!word)
		snprintf(text, 32, "opcode %llu", (unsigned long long)opcode);
	return word ? word : text;
}

const char *trace_status_name(uint64_t status, char text[32])
{
	const char *word = word_status(status);

	if (!word)
		snprintf(text, 32, "status %llu", (unsigned long long)status);
	return word ? word : text;
}

static struct trace_command *find_traced(struct trace_steps *s, const struct trace_event *e,
					 uint64_t index)
{
	size_t least = s->count > SEARCH_BACK ? s->count - SEARCH_BACK : 0;

	for (size_t i = s->count; i > least; i--) {
		struct trace_command *c = &s->list[i - 1];

		if (c->context == e->context && c->queue == e->queue && c->index == index)
			return c;
	}
	return NULL;
}

static void note_command(struct trace_steps *s, const struct trace_event *e)
{
	s->list[s->count++] = (struct trace_command){
		.context = e->context,
		.queue = e->queue,
		.queue_kind = e->queue_kind,
		.index = e->index,
		.opcode = e->opcode,
		.cookie = e->cookie,
		.step = e->step,
		.submitted = e->time_ns,
	};
}

/* The doorbell tells the device of @count commands; the first ones may be from before the trace. */
static void note_doorbell(struct trace_steps *s, const struct trace_event *e)
{
	for (uint64_t i = e->count; i > 0; i--) {
		struct trace_command *c = find_traced(s, e, (uint32_t)(e->index + i - 1));

		if (!c || c->doorbell)
			break;
		c->doorbell = e->time_ns;
	}
}

static void note_completion(struct trace_steps *s, const struct trace_event *e)
{
	struct trace_command *c = find_traced(s, e, e->index);

	if (!c || c->done) {
		s->strange++;
		return;
	}
	if (e->flags & EMBENG_CQE_ACCEPTED) {
		c->accepted = true;
		c->accepted_seen = e->time_ns;
		c->accepted_device_ns = e->device_ns;
		return;
	}
	c->done = true;
	c->seen = e->time_ns;
	c->status = e->status;
	c->done_device_ns = e->device_ns;
}

static void note_clock_distance(uint64_t seen, uint64_t device_ns, int64_t *least)
{
	int64_t distance = (int64_t)(seen - device_ns);

	if (device_ns && distance < *least)
		*least = distance;
}

/* Trace time less device time, of the completion that was noticed fastest. */
static int64_t find_clock_distance(const struct trace_command *list, size_t count)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		const struct trace_command *c = &list[i];

		if (c->accepted)
			note_clock_distance(c->accepted_seen, c->accepted_device_ns, &least);
		if (c->done)
			note_clock_distance(c->seen, c->done_device_ns, &least);
	}
	return least;
}

/* A time of the device by the clock of the trace, within the bounds that are known. */
static uint64_t place_device_time(uint64_t device_ns, int64_t distance, uint64_t least,
				  uint64_t most)
{
	uint64_t at = device_ns + (uint64_t)distance;

	if (!device_ns || (int64_t)(at - least) < 0)
		return device_ns ? least : most;
	return at > most ? most : at;
}

static void measure_stages(struct trace_command *c, int64_t distance)
{
	uint64_t at[TRACE_STAGES + 1];

	at[0] = c->submitted;
	at[1] = c->doorbell > c->submitted ? c->doorbell : c->submitted;
	if (c->seen < at[1])
		at[1] = c->seen = c->seen > c->submitted ? c->seen : c->submitted;
	at[2] = at[1];
	if (c->accepted)
		at[2] = place_device_time(c->accepted_device_ns, distance, at[1], c->seen);
	at[3] = place_device_time(c->done_device_ns, distance, at[2], c->seen);
	at[4] = c->seen;
	for (int stage = 0; stage < TRACE_STAGES; stage++)
		c->stage_ns[stage] = at[stage + 1] - at[stage];
}

static int order_commands(const void *left, const void *right)
{
	const struct trace_command *a = left, *b = right;
	const uint64_t keys[][2] = {{a->context, b->context},
				    {a->step, b->step},
				    {a->submitted, b->submitted},
				    {a->queue, b->queue},
				    {a->index, b->index}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	}
	return 0;
}

static size_t count_of_context(const struct trace_steps *s, size_t first)
{
	size_t count = 0;

	while (first + count < s->count && s->list[first + count].context == s->list[first].context)
		count++;
	return count;
}

static void measure_context(struct trace_command *list, size_t count)
{
	int64_t distance = find_clock_distance(list, count);

	for (size_t i = 0; i < count; i++) {
		if (list[i].done)
			measure_stages(&list[i], distance);
	}
}

int trace_steps_make(struct trace_steps *s, const struct trace_events *events)
{
	*s = (struct trace_steps){.list = calloc(events->count + 1, sizeof(*s->list))};
	if (!s->list)
		return -ENOMEM;
	for (size_t i = 0; i < events->count; i++) {
		const struct trace_event *e = &events->list[i];

		if (e->kind == TRACE_COMMAND)
			note_command(s, e);
		else if (e->kind == TRACE_TAKE)
			note_doorbell(s, e);
		else if (e->kind == TRACE_COMPLETE)
			note_completion(s, e);
	}
	qsort(s->list, s->count, sizeof(*s->list), order_commands);
	for (size_t i = 0, count; i < s->count; i += count) {
		count = count_of_context(s, i);
		measure_context(&s->list[i], count);
	}
	for (size_t i = 0; i < s->count; i++)
		s->unfinished += !s->list[i].done;
	return 0;
}

void trace_steps_free(struct trace_steps *s)
{
	free(s->list);
	*s = (struct trace_steps){0};
}

size_t trace_steps_group(const struct trace_steps *s, size_t first)
{
	size_t count = 0;

	while (first + count < s->count && s->list[first + count].step == s->list[first].step &&
	       s->list[first + count].context == s->list[first].context)
		count++;
	return count;
}
