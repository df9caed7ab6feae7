// SPDX-License-Identifier: MIT
/*
 * Parses the arguments of a verb, with the options that all verbs have.
 *
 * Errors of argp and getopt are caught and reported as any other error, so parsing takes stderr
 * over for a moment; it is done by the main thread before others start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* argp passes no input to a child that its parent does not know of. */
static struct output *parsed_output;
static FILE *saved_stderr;

enum { KEY_LIST_OPTIONS = 0x7f00 };

static const struct argp *parsed_argp;

/* Prints options of one table, "long TAB short TAB argument TAB words", a line each. */
static void list_option_table(const struct argp_option *o)
{
	for (; o && (o->name || o->key || o->doc); o++) {
		if (!o->name || o->flags & (OPTION_HIDDEN | OPTION_DOC | OPTION_ALIAS))
			continue;
		printf("%s\t", o->name);
		if (o->key > ' ' && o->key < 0x7f)
			putchar(o->key);
		printf("\t%s\t%s\n", o->arg ? o->arg : "", o->doc ? o->doc : "");
	}
}

/* Prints the arguments of a verb, and then its options with those of the children. */
static void list_options(const struct argp *argp)
{
	printf("%s\n", argp->args_doc ? argp->args_doc : "");
	list_option_table(argp->options);
	for (const struct argp_child *child = argp->children; child && child->argp; child++)
		list_option_table(child->argp->options);
}

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
	case KEY_LIST_OPTIONS:
		list_options(parsed_argp);
		stderr = saved_stderr;
		exit(output_finish(CLI_OK));
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option common_options[] = {
	{"json", 'j', NULL, 0, "Print one JSON document on stdout, also on failure", -1},
	{"help", 'h', NULL, 0, "Show this help and exit", -1},
	{"list-options", KEY_LIST_OPTIONS, NULL, OPTION_HIDDEN, NULL, -1}, /* for completions */
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
	parsed_argp = &whole;

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
	if (err == ENOMEM || !text)
		code = output_fail(out, CLI_DEVICE, ENOMEM, NULL, "out of memory");
	else if (err || length)
		code = report_usage(out, argv[0], text);
	free(text);
	return code;
}

int command_parse_before(const struct argp *argp, int argc, char **argv, struct output *out,
			 void *input, int *at)
{
	char *first;
	int code;

	*at = 1;
	while (*at < argc && strcmp(argv[*at], "--") != 0)
		(*at)++;
	first = argv[*at];
	argv[*at] = NULL;
	code = command_parse(argp, *at, argv, out, input);
	argv[*at] = first;
	return code;
}

error_t argument_take(const char **place, const char *arg, const char *what,
		      struct argp_state *state)
{
	if (*place) {
		argp_error(state, "the command takes one %s; '%s' is a second", what, arg);
		return EINVAL;
	}
	*place = arg;
	return 0;
}
