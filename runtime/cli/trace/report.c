// SPDX-License-Identifier: MIT
/*
 * Shows traced steps: as lines for people, as members of a document, and as a file in the trace event
 * format of Chrome, which Perfetto reads. All three have the same commands and the same times, which
 * steps.c has computed; nothing is kept here.
 */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "../frame/document.h"
#include "../frame/outfile.h"

static const char *const queue_kinds[] = {"admin", "input", "inference", "gradient", "transfer"};

static const char *queue_kind_name(uint64_t kind)
{
	return kind < sizeof(queue_kinds) / sizeof(queue_kinds[0]) ? queue_kinds[kind] : "unknown";
}

static bool is_of_step(const struct trace_command *c, uint64_t step)
{
	return c->done && (!step || c->step == step);
}

/* When the first command of a group was submitted, and when the last one was seen to be done. */
static bool find_span(const struct trace_command *list, size_t count, uint64_t step,
		      uint64_t *begin, uint64_t *end)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!is_of_step(&list[i], step))
			continue;
		if (!any || list[i].submitted < *begin)
			*begin = list[i].submitted;
		if (!any || list[i].seen > *end)
			*end = list[i].seen;
		any = true;
	}
	return any;
}

static double to_us(uint64_t ns)
{
	return (double)ns / 1000;
}

static void print_traced(const struct trace_command *c, uint64_t begin)
{
	char opcode[32], status[32];

	printf("  %-12s %-9s %3" PRIu64 " #%-6" PRIu64 " %+10.1f",
	       trace_opcode_name(c->opcode, opcode), queue_kind_name(c->queue_kind), c->queue,
	       c->index, to_us(c->submitted - begin));
	for (int stage = 0; stage < TRACE_STAGES; stage++) {
		if (stage == TRACE_ACCEPT && !c->accepted)
			printf(" %9s", "-");
		else
			printf(" %9.1f", to_us(c->stage_ns[stage]));
	}
	printf(" %10.1f  %s\n", to_us(c->seen - c->submitted),
	       trace_status_name(c->status, status));
}

static void print_step(const struct trace_command *list, size_t count, uint64_t step)
{
	uint64_t begin = 0, end = 0;

	if (!find_span(list, count, step, &begin, &end))
		return;
	if (list->step)
		printf("context %" PRIu64 ", step %" PRIu64, list->context, list->step);
	else
		printf("context %" PRIu64 ", commands of no step", list->context);
	printf(": %.1f us, from %.6f s on\n", to_us(end - begin), (double)begin / 1e9);
	printf("  %-12s %-9s %3s %-7s %10s", "command", "queue", "", "", "at us");
	for (int stage = 0; stage < TRACE_STAGES; stage++)
		printf(" %9s", trace_stage_names[stage]);
	printf(" %10s  %s\n", "total", "status");
	for (size_t i = 0; i < count; i++) {
		if (is_of_step(&list[i], step))
			print_traced(&list[i], begin);
	}
}

void trace_print(const struct trace_steps *s, uint64_t step)
{
	for (size_t i = 0, count; i < s->count; i += count) {
		count = trace_steps_group(s, i);
		print_step(&s->list[i], count, step);
	}
}

static struct json_object *document_traced(const struct trace_command *c)
{
	struct json_object *row = json_object_new_object(), *stages = json_object_new_object();
	char text[32];

	json_add_text(row, "command", trace_opcode_name(c->opcode, text));
	json_add_number(row, "queue", c->queue);
	json_add_text(row, "queue_kind", queue_kind_name(c->queue_kind));
	json_add_number(row, "index", c->index);
	json_add_text(row, "status", trace_status_name(c->status, text));
	json_add_number(row, "submitted_ns", c->submitted);
	json_add_number(row, "completed_ns", c->seen);
	for (int stage = 0; stage < TRACE_STAGES; stage++) {
		if (stage == TRACE_ACCEPT && !c->accepted)
			json_object_object_add(stages, trace_stage_names[stage], NULL);
		else
			json_add_number(stages, trace_stage_names[stage], c->stage_ns[stage]);
	}
	json_object_object_add(row, "stage_ns", stages);
	return row;
}

static void document_step(struct json_object *list, const struct trace_command *commands,
			  size_t count, uint64_t step)
{
	struct json_object *row, *rows;
	uint64_t begin = 0, end = 0;

	if (!find_span(commands, count, step, &begin, &end))
		return;
	row = json_object_new_object();
	rows = json_object_new_array();
	json_add_number(row, "context", commands->context);
	json_object_object_add(row, "step",
			       commands->step ? json_object_new_uint64(commands->step) : NULL);
	json_add_number(row, "begin_ns", begin);
	json_add_number(row, "end_ns", end);
	for (size_t i = 0; i < count; i++) {
		if (is_of_step(&commands[i], step))
			json_object_array_add(rows, document_traced(&commands[i]));
	}
	json_object_object_add(row, "commands", rows);
	json_object_array_add(list, row);
}

void trace_document(struct json_object *document, const struct trace_steps *s, uint64_t step)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0, count; i < s->count; i += count) {
		count = trace_steps_group(s, i);
		document_step(list, &s->list[i], count, step);
	}
	json_object_object_add(document, "steps", list);
}

/* An event of the format; times are in microseconds, with a fraction. */
static struct json_object *make_chrome_event(const char *phase, const char *name, uint64_t process,
					     uint64_t thread, uint64_t ns)
{
	struct json_object *e = json_object_new_object();
	char digits[48];

	json_add_text(e, "ph", phase);
	json_add_text(e, "name", name);
	json_add_number(e, "pid", process);
	json_add_number(e, "tid", thread);
	snprintf(digits, sizeof(digits), "%" PRIu64 ".%03u", ns / 1000, (unsigned int)(ns % 1000));
	json_object_object_add(e, "ts", json_object_new_double_s((double)ns / 1000, digits));
	return e;
}

/* One end of a span. Spans of one id nest; commands of a queue may overlap, so each has an id. */
static struct json_object *add_chrome_end(struct json_object *list, const char *phase,
					  const char *name, const struct trace_command *c,
					  uint64_t ns)
{
	struct json_object *e = make_chrome_event(phase, name, c->context, c->queue, ns);
	char id[80];

	snprintf(id, sizeof(id), "%" PRIu64 ".%" PRIu64 ".%" PRIu64, c->context, c->queue,
		 c->index);
	json_add_text(e, "cat", "embeng");
	json_add_text(e, "id", id);
	json_object_array_add(list, e);
	return e;
}

static void add_chrome_command(struct json_object *list, const struct trace_command *c)
{
	struct json_object *args = json_object_new_object();
	uint64_t at = c->submitted;
	char opcode[32], status[32], name[64];

	trace_opcode_name(c->opcode, opcode);
	if (c->step)
		snprintf(name, sizeof(name), "%s %" PRIu64, trace_opcode_name(c->opcode, opcode),
			 c->step);
	else
		snprintf(name, sizeof(name), "%s", trace_opcode_name(c->opcode, opcode));
	json_add_number(args, "step", c->step);
	json_add_number(args, "index", c->index);
	json_add_text(args, "status", trace_status_name(c->status, status));
	json_object_object_add(add_chrome_end(list, "b", name, c, at), "args", args);
	for (int stage = 0; stage < TRACE_STAGES; stage++) {
		if (stage == TRACE_ACCEPT && !c->accepted)
			continue;
		add_chrome_end(list, "b", trace_stage_names[stage], c, at);
		at += c->stage_ns[stage];
		add_chrome_end(list, "e", trace_stage_names[stage], c, at);
	}
	add_chrome_end(list, "e", name, c, at);
}

/* Names a context and its queue, once for each command that begins a new one of either. */
static void add_chrome_names(struct json_object *list, const struct trace_command *c)
{
	const char *const what[] = {"process_name", "thread_name"};
	char text[64];

	for (int i = 0; i < 2; i++) {
		struct json_object *e = make_chrome_event("M", what[i], c->context, c->queue, 0);
		struct json_object *args = json_object_new_object();

		if (i)
			snprintf(text, sizeof(text), "queue %" PRIu64 " (%s)", c->queue,
				 queue_kind_name(c->queue_kind));
		else
			snprintf(text, sizeof(text), "context %" PRIu64, c->context);
		json_add_text(args, "name", text);
		json_object_object_add(e, "args", args);
		json_object_array_add(list, e);
	}
}

static bool was_named(const struct trace_steps *s, size_t until, uint64_t step)
{
	const struct trace_command *c = &s->list[until];

	for (size_t i = until; i > 0; i--) {
		const struct trace_command *other = &s->list[i - 1];

		if (other->context != c->context)
			return false;
		if (other->queue == c->queue && is_of_step(other, step))
			return true;
	}
	return false;
}

int trace_chrome(const char *path, const struct trace_steps *s, uint64_t step)
{
	struct json_object *document = json_object_new_object(), *list = json_object_new_array();
	struct outfile file;
	size_t length;
	char *text;
	int err;

	for (size_t i = 0; i < s->count; i++) {
		if (!is_of_step(&s->list[i], step))
			continue;
		if (!was_named(s, i, step))
			add_chrome_names(list, &s->list[i]);
		add_chrome_command(list, &s->list[i]);
	}
	json_add_text(document, "displayTimeUnit", "ns");
	json_object_object_add(document, "traceEvents", list);
	err = document_text(document, &text, &length);
	json_object_put(document);
	if (err)
		return err;
	err = outfile_open(&file, path);
	if (!err) {
		fwrite(text, 1, length, file.stream);
		err = outfile_commit(&file);
	}
	free(text);
	return err;
}
