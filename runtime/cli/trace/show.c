// SPDX-License-Identifier: MIT
/*
 * Shows the steps of a trace, for all commands that do so: reads the events, makes the steps of them,
 * and prints these or writes them. The events and the steps live as long as the call.
 */
#include "show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "../frame/command.h"
#include "../frame/infile.h"
#include "report.h"

#define TRACE_MOST ((size_t)256 << 20)

error_t trace_show_option(int key, char *arg, struct argp_state *state, struct showing *s)
{
	switch (key) {
	case KEY_CHROME:
		s->chrome = arg;
		return 0;
	case KEY_STEP:
		if (!number_read_code(arg, &s->step) && s->step)
			return 0;
		argp_error(state, "--step takes the number of a step, from 1, not '%s'", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void add_program(struct json_object *document, const struct showing *s)
{
	struct json_object *words = json_object_new_array();

	for (char **word = s->program; *word; word++)
		json_object_array_add(words, json_object_new_string(*word));
	json_object_object_add(document, "program", words);
	json_add_number(document, "exit_status", (uint64_t)s->status);
}

static int emit_trace(const struct output *out, const struct showing *s,
		      const struct trace_events *events, const struct trace_steps *steps)
{
	struct json_object *document = json_document(out);

	if (s->program)
		add_program(document, s);
	json_add_number(document, "events", events->count);
	json_add_number(document, "commands", steps->count);
	json_add_number(document, "unfinished", steps->unfinished);
	json_add_number(document, "strange", steps->strange);
	json_add_number(document, "lost", events->lost);
	json_add_number(document, "unreadable", events->odd);
	json_add_text(document, "chrome", s->chrome);
	trace_document(document, steps, s->step);
	return json_emit(document);
}

static int show_trace(const struct output *out, const struct showing *s,
		      const struct trace_events *events, const struct trace_steps *steps)
{
	int err = s->chrome ? trace_chrome(s->chrome, steps, s->step) : 0;

	if (err)
		return output_fail(out, exit_of_errno(err), err, NULL, "%s: %s", s->chrome,
				   strerror(-err));
	if (out->json)
		return emit_trace(out, s, events, steps);
	trace_print(steps, s->step);
	printf("%zu events, %zu commands, %zu not finished", events->count, steps->count,
	       steps->unfinished);
	if (steps->strange || events->lost || events->odd)
		printf("; %zu completions without a command, %zu events lost, %zu lines unreadable",
		       steps->strange, events->lost, events->odd);
	putchar('\n');
	return CLI_OK;
}

int trace_show_text(const struct output *out, const struct showing *s, const char *text,
		    size_t length)
{
	struct trace_events events;
	struct trace_steps steps = {0};
	int code, err = trace_parse(&events, text, length);

	if (!err)
		err = trace_steps_make(&steps, &events);
	code = err ? output_fail(out, CLI_DEVICE, -err, NULL, "out of memory")
		   : show_trace(out, s, &events, &steps);
	if (!code && s->file && !events.count && !events.odd && !out->json)
		fprintf(stderr,
			"embeng trace show: %s has no events of commands; `embeng decode` says "
			"what is in a file\n",
			s->file);
	trace_steps_free(&steps);
	trace_free(&events);
	return code;
}

int trace_load(const char *path, char **text, size_t *length)
{
	return infile_read(path, TRACE_MOST, text, length);
}

int trace_show_file(const struct output *out, const struct showing *s, const char *path)
{
	size_t length;
	char *text;
	int code, err = trace_load(path, &text, &length);

	if (err)
		return output_fail(out, err == -ENOENT ? CLI_USAGE : exit_of_errno(err), err, NULL,
				   "%s: %s", path, strerror(-err));
	code = trace_show_text(out, s, text, length);
	free(text);
	return code;
}
