// SPDX-License-Identifier: MIT
/*
 * Reads the text of the kernel's trace file, of which a line is "TASK-PID [CPU] FLAGS TIME: EVENT:
 * NAME=VALUE ...". The name of a task is its program's choice and may look like anything, so a line
 * is read from its event, which is the last one that the line has. A file of somebody else is not
 * trusted: a line that cannot be read is counted and left out.
 *
 * The list belongs to its caller.
 */
#define _GNU_SOURCE
#include "events.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "../decode/line.h"

#define MARK ": embeng_"
#define WORD 64

static const struct {
	const char *name;
	enum trace_kind kind;
} kinds[] = {
	{"embeng_submit", TRACE_SUBMIT},   {"embeng_submit_take", TRACE_TAKE},
	{"embeng_command", TRACE_COMMAND}, {"embeng_complete", TRACE_COMPLETE},
	{"embeng_event", TRACE_OTHER},	   {"embeng_admin", TRACE_OTHER},
	{"embeng_reset", TRACE_OTHER},
};

static uint64_t *find_event_field(struct trace_event *e, const char *name)
{
	const struct {
		const char *name;
		uint64_t *value;
	} fields[] = {
		{"context", &e->context}, {"queue", &e->queue}, {"kind", &e->queue_kind},
		{"index", &e->index},	  {"count", &e->count}, {"opcode", &e->opcode},
		{"status", &e->status},	  {"flags", &e->flags}, {"cookie", &e->cookie},
		{"step", &e->step},	  {"after", &e->after}, {"device_ns", &e->device_ns},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!strcmp(fields[i].name, name))
			return fields[i].value;
	}
	return NULL;
}

/* The last MARK of a line. */
static const char *find_mark(const char *line, const char *end)
{
	const char *found = NULL;
	size_t length = strlen(MARK);

	for (const char *at = line; (size_t)(end - at) >= length; at++) {
		if (!memcmp(at, MARK, length))
			found = at;
	}
	return found;
}

/* Copies a word up to one of @stop, and sets *at behind it. Return: false if it is too long. */
static bool take_word(const char **at, const char *end, const char *stop, char word[WORD])
{
	size_t length = 0;

	while (*at < end && !strchr(stop, **at) && length < WORD - 1)
		word[length++] = *(*at)++;
	word[length] = '\0';
	return *at == end || strchr(stop, **at);
}

static bool read_event_fields(struct trace_event *e, const char *at, const char *end)
{
	char name[WORD], value[WORD];
	uint64_t *field;

	while (at < end) {
		while (at < end && *at == ' ')
			at++;
		if (at == end)
			break;
		if (!take_word(&at, end, "= ", name) || at == end || *at++ != '=' ||
		    !take_word(&at, end, " ", value))
			return false;
		field = find_event_field(e, name);
		if (field && number_read_code(value, field))
			return false;
	}
	return true;
}

/* Return: 1 for an event, 0 for a line without one, -EINVAL for one that cannot be read. */
static int read_event(struct trace_event *e, const char *line, const char *end)
{
	const char *mark = find_mark(line, end), *at = mark ? mark + 2 : end;
	char name[WORD];

	*e = (struct trace_event){.kind = TRACE_OTHER};
	if (!mark || *line == '#')
		return 0;
	if (!take_word(&at, end, ":", name) || at == end)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(kinds[i].name, name))
			e->kind = kinds[i].kind;
	}
	if (!line_time(line, mark, &e->time_ns))
		return -EINVAL;
	if (e->kind == TRACE_OTHER)
		return 0;
	return read_event_fields(e, at + 1, end) ? 1 : -EINVAL;
}

static int add_event(struct trace_events *events, const struct trace_event *e)
{
	if (events->count == events->capacity) {
		size_t capacity = events->capacity ? 2 * events->capacity : 1024;
		struct trace_event *grown = realloc(events->list, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		events->list = grown;
		events->capacity = capacity;
	}
	events->list[events->count++] = *e;
	return 0;
}

/* "CPU:1 [LOST 17 EVENTS]", and without a number where the kernel does not know it */
static void note_lost(struct trace_events *events, const char *line, const char *end)
{
	static const char lost[] = "[LOST ";
	const char *at = memmem(line, (size_t)(end - line), lost, strlen(lost));
	char word[WORD];
	uint64_t count = 1;

	if (strncmp(line, "CPU:", end - line < 4 ? (size_t)(end - line) : 4) || !at)
		return;
	at += strlen(lost);
	if (take_word(&at, end, " ", word))
		(void)number_read_code(word, &count);
	events->lost += count;
}

int trace_parse(struct trace_events *events, const char *text, size_t length)
{
	const char *end = text + length;
	struct trace_event e;

	*events = (struct trace_events){0};
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		int found;

		/* A text that went through another system may have a carriage return there. */
		stop -= newline && stop > text && stop[-1] == '\r';
		found = read_event(&e, text, stop);

		if (found > 0 && add_event(events, &e))
			return -ENOMEM;
		events->odd += found < 0;
		if (!found)
			note_lost(events, text, stop);
		text = newline ? newline + 1 : end;
	}
	return 0;
}

void trace_free(struct trace_events *events)
{
	free(events->list);
	*events = (struct trace_events){0};
}
