// SPDX-License-Identifier: MIT
/*
 * The table of verbs, and the options that all verbs have. A verb that is misspelt is answered with
 * the nearest one.
 *
 * Errors of argp and getopt are caught and reported as any other error, so parsing takes stderr
 * over for a moment; it is done by the main thread before others start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

const struct command commands[] = {
	{"list", "list all devices, also those that cannot be opened", cmd_list},
	{"info", "show what a device is and what it can do", cmd_info},
	{"regs", "show the registers of a device", cmd_regs},
	{"reset", "reset a device", cmd_reset},
	{"plan", "compute how many bytes a model will need", cmd_plan},
	{"demo", "train on this machine's package data and answer a question", cmd_demo},
	{"train", "learn item embeddings from baskets or interactions", cmd_train},
	{"checkpoint", "list, verify, dump, compare or reshard a checkpoint", cmd_checkpoint},
	{"lookup", "look ids up in a checkpoint, without a device", cmd_lookup},
	{"config", "show or convert model files of TPU embeddings", cmd_config},
	{"fw", "pack, inspect, verify or sign a firmware image", cmd_fw},
	{"bench", "measure a device and the limits of the memory", cmd_bench},
	{"conform", "run conformance vectors on a device", cmd_conform},
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < command_count; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

static size_t pick_smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

#define LONGEST_NAME 32

/* Edits (insert, delete, replace) that make one name of the other. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[LONGEST_NAME + 1], length = strlen(b);

	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; a[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < length; j++) {
			size_t replaced = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = pick_smaller(replaced, 1 + pick_smaller(diagonal, row[j]));
		}
	}
	return row[length];
}

const struct command *command_nearest(const char *name)
{
	const struct command *best = NULL;
	size_t least = 3;

	if (strlen(name) > LONGEST_NAME)
		return NULL;
	for (size_t i = 0; i < command_count; i++) {
		size_t distance = edit_distance(name, commands[i].name);

		if (distance < least) {
			least = distance;
			best = &commands[i];
		}
	}
	return best;
}

/* argp passes no input to a child that its parent does not know of. */
static struct output *parsed_output;
static FILE *saved_stderr;

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	switch (key) {
	case 'j':
		parsed_output->json = true;
		return 0;
	case 'h':
		setenv("ARGP_HELP_FMT", "no-dup-args-note,rmargin=90", 0);
		argp_state_help(state, stdout,
				ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
		stderr = saved_stderr;
		exit(output_finish(CLI_OK));
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option common_options[] = {
	{"json", 'j', NULL, 0, "Print one JSON document on stdout, also on failure", -1},
	{"help", 'h', NULL, 0, "Show this help and exit", -1},
	{0},
};

static const struct argp common_argp = {.options = common_options, .parser = parse_common};

static bool asks_for_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
			return true;
	}
	return false;
}

/* The first line of what argp and getopt said, without the program's name. */
static int report_usage(const struct output *out, const char *program, char *text)
{
	char hint[80];

	text[strcspn(text, "\n")] = '\0';
	if (!strncmp(text, program, strlen(program)) && text[strlen(program)] == ':')
		text += strlen(program) + 1;
	text += strspn(text, " ");
	snprintf(hint, sizeof(hint), "See: %s --help", program);
	return output_fail(out, CLI_USAGE, EINVAL, hint, "%s",
			   *text ? text : "the arguments cannot be understood");
}

int command_parse(const struct argp *argp, int argc, char **argv, struct output *out, void *input)
{
	static const struct argp_child children[] = {{&common_argp, 0, "Common options:", -1}, {0}};
	struct argp whole = *argp;
	char *text = NULL;
	size_t length;
	error_t err;
	int code = CLI_OK;

	/* A failure to parse must still come out as a document, so it is known beforehand. */
	out->json = asks_for_json(argc, argv);
	parsed_output = out;
	whole.children = children;

	/* getopt writes to stderr whatever the flags of argp: caught, to be said in our form. */
	saved_stderr = stderr;
	stderr = open_memstream(&text, &length);
	if (!stderr) {
		stderr = saved_stderr;
		return output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	}
	err = argp_parse(&whole, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP, NULL, input);
	fclose(stderr);
	stderr = saved_stderr;
	if (err || length)
		code = report_usage(out, argv[0], text);
	free(text);
	return code;
}
