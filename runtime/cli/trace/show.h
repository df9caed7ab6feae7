/* SPDX-License-Identifier: MIT */
/* Showing a trace, of the driver's events or of what the library has recorded. */
#ifndef CLI_TRACE_SHOW_H
#define CLI_TRACE_SHOW_H

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

#include "../frame/output.h"

enum { KEY_STEP = 0x200, KEY_CHROME };

/* Options of every command that shows a trace, and the end of its help. */
#define TRACE_SHOW_OPTIONS \
	{"step", KEY_STEP, "N", 0, "Show only this step (all steps)", 0}, \
		{"chrome", \
		 KEY_CHROME, \
		 "FILE", \
		 0, \
		 "Write a file in Chrome's trace event format as well, for " \
		 "ui.perfetto.dev", \
		 0}
#define TRACE_STAGES_HELP \
	"Stages: wait in the ring for fences; accept, until the device has read the ids of a\n" \
	"lookup; run; notice, until the driver or the library saw the completion. Times are\n" \
	"microseconds.\n\n"

/**
 * struct showing - the choice of steps that are shown, and a file for them
 * @chrome: file to be written for Perfetto, or NULL
 * @step: the only step that is shown, or 0
 * @file: file that the user named, or NULL
 * @program: the program that was run for it and its arguments, up to NULL; or NULL
 * @status: exit status of the program
 */
struct showing {
	const char *chrome, *file;
	uint64_t step;
	char **program;
	int status;
};

/* Takes an option. Return: ARGP_ERR_UNKNOWN if it is none of TRACE_SHOW_OPTIONS. */
error_t trace_show_option(int key, char *arg, struct argp_state *state, struct showing *s);

/* Shows a trace of @length bytes, or one in a file. Return: an exit code. */
int trace_show_text(const struct output *out, const struct showing *s, const char *text,
		    size_t length);
int trace_show_file(const struct output *out, const struct showing *s, const char *path);

/* Reads a trace. Return: 0 or a negative errno, without a message. */
int trace_load(const char *path, char **text, size_t *length);

/* `embeng trace run` */
int trace_run(int argc, char **argv);

#endif
