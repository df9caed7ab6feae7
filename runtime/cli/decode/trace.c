// SPDX-License-Identifier: MIT
/*
 * Reads the driver's trace events as text: a file of tracefs, what `trace-cmd report` prints, or the
 * file that the library writes for EMBENG_TRACE.
 * kmod/trace.h has the events. Names of tasks, which stand in front of each event, are not shown.
 *
 * The last indices of each queue are kept, so that an index that goes back is found. There may be
 * more queues in a hostile file than are kept; for those nothing is compared.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "../frame/document.h"
#include "embeng_engine.h"
#include "line.h"
#include "readers.h"
#include "words.h"

#define QUEUES_KEPT 1024u
#define PREFIX "embeng_"
#define KEYS_MAX 8

struct trace_queue {
	uint64_t context, queue;
	uint64_t submitted, taken, cq_tail, epoch;
	bool submits, takes, events;
};

struct trace {
	struct sheet *s;
	const struct line *line;
	struct trace_queue queues[QUEUES_KEPT];
	size_t queue_count;
	uint64_t sequence, time_ns, count;
	char rung[16];
};

/* Finds the event of a line, behind ": embeng_". @head: set to the end of what stands before that. */
static bool find_event(const struct line *line, char name[32], const char **head, struct line *rest)
{
	const char *end = line->at + line->length;

	for (const char *p = line->at; p && p < end; p++) {
		size_t length;

		p = memchr(p, ':', (size_t)(end - p));
		if (!p || (size_t)(end - p) < 2 + strlen(PREFIX))
			return false;
		if (p[1] != ' ' || memcmp(p + 2, PREFIX, strlen(PREFIX)) != 0)
			continue;
		*head = p;
		*rest = (struct line){
			.at = p + 2, .length = (size_t)(end - p - 2), .offset = line->offset};
		if (!line_take(rest, name, 32))
			return false;
		length = strlen(name);
		if (!length || name[length - 1] != ':')
			return false;
		name[length - 1] = '\0';
		memmove(name, name + strlen(PREFIX), length - strlen(PREFIX));
		return true;
	}
	return false;
}

bool trace_is(const struct bytes *b)
{
	struct line line = {0}, rest;
	const char *head;
	char name[32];
	size_t end = 0;

	for (int i = 0; i < 2000 && line_next((const char *)b->data, b->size, &line, &end); i++) {
		if (find_event(&line, name, &head, &rest))
			return true;
	}
	return b->size > 8 && !memcmp(b->data, "# tracer:", 9);
}

static struct trace_queue *find_trace_queue(struct trace *t, uint64_t context, uint64_t queue)
{
	for (size_t i = 0; i < t->queue_count; i++) {
		if (t->queues[i].context == context && t->queues[i].queue == queue)
			return &t->queues[i];
	}
	if (t->queue_count == QUEUES_KEPT)
		return NULL;
	t->queues[t->queue_count] = (struct trace_queue){.context = context, .queue = queue};
	return &t->queues[t->queue_count++];
}

static void compare_index(struct trace *t, const char *what, bool known, uint64_t expected,
			  uint64_t index)
{
	if (!known || (uint32_t)index == (uint32_t)expected)
		return;
	if ((int32_t)((uint32_t)index - (uint32_t)expected) < 0)
		sheet_odd(t->s, t->line->offset,
			  "the %s index goes back, from %" PRIu64 " to %" PRIu64, what, expected,
			  index);
	else
		sheet_odd(t->s, t->line->offset,
			  "the %s index jumps from %" PRIu64 " to %" PRIu64 ": events were lost",
			  what, expected, index);
}

static void read_submit(struct trace *t, const uint64_t *v)
{
	struct trace_queue *q = find_trace_queue(t, v[0], v[1]);

	sheet_says(t->s, "%" PRIu64 " commands from index %" PRIu64 " on were written to the ring",
		   v[3], v[2]);
	if (!q)
		return;
	compare_index(t, "submitted", q->submits, q->submitted, v[2]);
	q->submitted = (uint32_t)(v[2] + v[3]);
	q->submits = true;
}

static void read_submit_take(struct trace *t, const uint64_t *v)
{
	struct trace_queue *q = find_trace_queue(t, v[0], v[1]);
	uint64_t end = (uint32_t)(v[2] + v[3]);

	sheet_says(t->s, "the doorbell was rung for %" PRIu64 " commands from index %" PRIu64 " on",
		   v[3], v[2]);
	if (!q)
		return;
	compare_index(t, "rung", q->takes, q->taken, v[2]);
	if (q->submits && (int32_t)((uint32_t)end - (uint32_t)q->submitted) > 0)
		sheet_odd(t->s, t->line->offset,
			  "the doorbell is rung up to %" PRIu64
			  ", and commands were submitted up to %" PRIu64,
			  end, q->submitted);
	q->taken = end;
	q->takes = true;
}

static void read_command_event(struct trace *t, const uint64_t *v)
{
	sheet_says(t->s, "the command %s with cookie %#" PRIx64 " was written to the %s queue",
		   word_or_unknown(word_opcode(v[4])), v[5],
		   word_or_unknown(word_queue_kind(v[2])));
	if (!word_opcode(v[4]))
		sheet_odd(t->s, t->line->offset, "the opcode %" PRIu64 " is unknown", v[4]);
	if (!word_queue_kind(v[2]))
		sheet_odd(t->s, t->line->offset, "the kind of queue %" PRIu64 " is unknown", v[2]);
	(void)find_trace_queue(t, v[0], v[1]);
}

static void read_complete(struct trace *t, const uint64_t *v)
{
	const char *sentence = word_status_sentence(v[3]);

	(void)find_trace_queue(t, v[0], v[1]);
	sheet_says(t->s, "the command with cookie %#" PRIx64 " %s%s%s", v[2],
		   v[4] == EMBENG_CQE_ACCEPTED ? "was accepted" : "completed", v[3] ? ": " : "",
		   !v[3]      ? ""
		   : sentence ? sentence
			      : "unknown");
	if (!word_status(v[3]))
		sheet_odd(t->s, t->line->offset, "the status %" PRIu64 " is unknown", v[3]);
	if (v[4] != EMBENG_CQE_ACCEPTED && v[4] != EMBENG_CQE_DONE)
		sheet_odd(t->s, t->line->offset,
			  "the flags %" PRIu64 " are not one of ACCEPTED and DONE", v[4]);
}

static void read_event_record(struct trace *t, const uint64_t *v)
{
	struct trace_queue *q = find_trace_queue(t, v[0], v[1]);

	sheet_says(t->s,
		   "the program was told of completions up to %" PRIu64 " and report %" PRIu64,
		   v[2], v[3]);
	if (q && q->events && (int32_t)((uint32_t)v[2] - (uint32_t)q->cq_tail) < 0)
		sheet_odd(t->s, t->line->offset, "cq_tail goes back, from %" PRIu64 " to %" PRIu64,
			  q->cq_tail, v[2]);
	if (q && q->events && (int32_t)((uint32_t)v[3] - (uint32_t)q->epoch) < 0)
		sheet_odd(t->s, t->line->offset,
			  "the report goes back, from %" PRIu64 " to %" PRIu64, q->epoch, v[3]);
	if (!q)
		return;
	q->events = true;
	q->cq_tail = v[2];
	q->epoch = v[3];
}

static void read_admin(struct trace *t, const uint64_t *v)
{
	int32_t result = (int32_t)v[4];

	sheet_says(t->s,
		   "the driver's command %s for context %" PRIu64 ", queue %" PRIu64 " gave %d",
		   word_or_unknown(word_admin(v[0])), v[1], v[2], result);
	if (!word_admin(v[0]))
		sheet_odd(t->s, t->line->offset, "the admin opcode %" PRIu64 " is unknown", v[0]);
	if (result)
		sheet_odd(t->s, t->line->offset, "the driver's command %s failed: %d",
			  word_or_unknown(word_admin(v[0])), result);
}

static void read_reset(struct trace *t, const uint64_t *v)
{
	sheet_says(t->s, "the rung '%s' was taken; %" PRIu64 " resets have lost contexts", t->rung,
		   v[1]);
	sheet_odd(t->s, t->line->offset, "there was a reset of the rung '%s'", t->rung);
	if (v[1] < t->sequence)
		sheet_odd(t->s, t->line->offset,
			  "the sequence goes back, from %" PRIu64 " to %" PRIu64, t->sequence,
			  v[1]);
	t->sequence = v[1];
}

static const struct {
	const char *name, *keys[KEYS_MAX];
	void (*read)(struct trace *t, const uint64_t *values);
} events[] = {
	{"submit", {"context", "queue", "index", "count"}, read_submit},
	{"submit_take", {"context", "queue", "index", "count"}, read_submit_take},
	{"command",
	 {"context", "queue", "kind", "index", "opcode", "cookie", "step", "after"},
	 read_command_event},
	{"complete", {"context", "queue", "cookie", "status", "flags"}, read_complete},
	{"event", {"context", "queue", "cq_tail", "report"}, read_event_record},
	{"admin", {"opcode", "context", "queue", "index", "result"}, read_admin},
	{"reset", {"rung", "sequence"}, read_reset},
};

/* Reads "KEY=VALUE"; the rung of a reset is a word, and a result may be negative. */
static bool take_value(struct trace *t, struct line *rest, const char *key, uint64_t *value)
{
	size_t length = strlen(key);
	char word[64];

	if (!line_take(rest, word, sizeof(word)) || strncmp(word, key, length) != 0 ||
	    word[length] != '=')
		return false;
	if (!strcmp(key, "rung")) {
		snprintf(t->rung, sizeof(t->rung), "%.15s", word + length + 1);
		*value = 0;
		return true;
	}
	if (word[length + 1] == '-' && !number_read_code(word + length + 2, value)) {
		*value = 0 - *value;
		return true;
	}
	return !number_read_code(word + length + 1, value);
}

static void read_known_event(struct trace *t, size_t kind, struct line *rest)
{
	uint64_t values[KEYS_MAX] = {0};

	for (size_t k = 0; k < KEYS_MAX && events[kind].keys[k]; k++) {
		if (!take_value(t, rest, events[kind].keys[k], &values[k])) {
			sheet_odd(t->s, t->line->offset, "the event has no '%s' where it must be",
				  events[kind].keys[k]);
			return;
		}
		sheet_number(t->s, t->line->offset, events[kind].keys[k], values[k], NULL);
	}
	events[kind].read(t, values);
}

static void read_trace_line(struct trace *t)
{
	struct line rest;
	const char *head;
	uint64_t time;
	char name[32];
	size_t kind = 0;

	if (!find_event(t->line, name, &head, &rest)) {
		if (t->line->length > 20 && memmem(t->line->at, t->line->length, "LOST ", 5) &&
		    memmem(t->line->at, t->line->length, "EVENTS]", 7))
			sheet_odd(t->s, t->line->offset, "the tracer lost events here");
		return;
	}
	t->count++;
	sheet_part(t->s, t->line->offset, "%s", name);
	if (line_time(t->line->at, head, &time)) {
		sheet_text(t->s, t->line->offset, "time", "%" PRIu64 ".%09" PRIu64 " s",
			   time / 1000000000, time % 1000000000);
		if (time < t->time_ns)
			sheet_odd(t->s, t->line->offset, "the time goes back");
		t->time_ns = time;
	}
	while (kind < sizeof(events) / sizeof(events[0]) && strcmp(events[kind].name, name) != 0)
		kind++;
	if (kind == sizeof(events) / sizeof(events[0]))
		sheet_odd(t->s, t->line->offset, "the event %s%s is unknown", PREFIX, name);
	else
		read_known_event(t, kind, &rest);
}

void trace_read(struct sheet *s, const struct bytes *b)
{
	struct trace *t = calloc(1, sizeof(*t));
	struct line line = {0};
	size_t end = 0;

	if (!t)
		document_no_memory();
	t->s = s;
	t->line = &line;
	while (line_next((const char *)b->data, b->size, &line, &end)) {
		s->line = line.number;
		read_trace_line(t);
	}
	sheet_verdict(s, "%" PRIu64 " event%s of %zu queue%s.", t->count, t->count == 1 ? "" : "s",
		      t->queue_count, t->queue_count == 1 ? "" : "s");
	free(t);
}
