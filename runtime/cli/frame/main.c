// SPDX-License-Identifier: MIT
/*
 * The command `embeng`: finds the verb and runs it. Help and the answer to an unknown verb are
 * here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "embeng.h"

#include "command.h"
#include "exit.h"
#include "sink.h"

static void print_help(void)
{
	puts("Usage: embeng VERB [OPTION...]\n"
	     "Embedding tables that train and serve on an embedding engine.\n\n"
	     "Verbs:");
	for (size_t i = 0; i < command_count; i++)
		printf("  %-11s %s\n", commands[i].name, commands[i].summary);
	puts("\nOptions:\n"
	     "  --help       show this help and exit\n"
	     "  --version    show the version and exit\n"
	     "  --list-cmds  list the verbs, one per line\n\n"
	     "First steps:\n"
	     "  embeng list                      list all devices\n"
	     "  embeng demo                      watch tables train on real data\n"
	     "  embeng train ratings.csv         learn from your own data\n"
	     "  embeng VERB --help               show the options of a verb, with examples\n\n"
	     "With --json every verb prints one JSON document on stdout, also when it fails.\n"
	     "Exit status: 0 ok, 1 a check failed, 2 usage, 3 unsupported, 4 permission, 5 busy,\n"
	     "6 no such device, 7 device error, 8 timeout, 9 driver not loaded, 10 firmware,\n"
	     "11 data corrupt.");
}

static void print_verbs(void)
{
	for (size_t i = 0; i < command_count; i++)
		puts(commands[i].name);
}

static bool is_json(const char *option)
{
	return !strcmp(option, "--json") || !strcmp(option, "-j");
}

static int refuse_verb(const char *verb, int argc, char **argv)
{
	const struct command *nearest = command_nearest(verb);
	struct output out = {.verb = "error"};
	char hint[80] = "embeng --help lists the verbs";

	for (int i = 1; i < argc; i++)
		out.json |= is_json(argv[i]);
	if (is_json(verb))
		snprintf(hint, sizeof(hint), "Put the verb first: embeng list --json");
	else if (nearest)
		snprintf(hint, sizeof(hint), "Did you mean: embeng %s", nearest->name);
	if (out.json)
		return output_fail(&out, CLI_USAGE, EINVAL, hint, "there is no verb '%s'", verb);
	fprintf(stderr, "embeng: there is no verb '%s'\n  %s\n", verb, hint);
	return CLI_USAGE;
}

static int run_verb(const struct command *command, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "embeng %s", command->name);
	argv[1] = name;
	return command->run(argc - 1, argv + 1);
}

static int dispatch_verb(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_help();
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return CLI_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("embeng %s\n", embeng_version());
		return CLI_OK;
	}
	if (!strcmp(argv[1], "--list-cmds")) {
		print_verbs();
		return CLI_OK;
	}
	command = command_find(argv[1]);
	return command ? run_verb(command, argc, argv) : refuse_verb(argv[1], argc, argv);
}

int main(int argc, char **argv)
{
	sink_take_stdout();
	return output_finish(dispatch_verb(argc, argv));
}
