// SPDX-License-Identifier: MIT
/*
 * Verbs that have commands of their own (checkpoint, config, fw): finds the command, prints the
 * list of them, and refuses names that do not exist.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "group.h"

#define NAMES_TEXT 128

static void print_group_help(const struct group *group)
{
	fputs(group->intro, stdout);
	fputs("\nCommands:\n", stdout);
	for (size_t k = 0; k < group->count; k++)
		printf("  %-*s %s\n", group->column, group->list[k].usage, group->list[k].summary);
	fputs(group->end, stdout);
}

/* For completions, which are made from this: a command a line, with what it does. */
static void print_group_names(const struct group *group)
{
	for (size_t k = 0; k < group->count; k++)
		printf("%s\t%s\n", group->list[k].name, group->list[k].summary);
}

/* "a, b or c" */
static void join_names(const struct group *group, char text[NAMES_TEXT])
{
	size_t used = 0;

	for (size_t k = 0; k < group->count && used < NAMES_TEXT; k++) {
		const char *before = !k ? "" : k + 1 < group->count ? ", " : " or ";

		used += (size_t)snprintf(text + used, NAMES_TEXT - used, "%s%s", before,
					 group->list[k].name);
	}
}

static int refuse_command(const struct group *group, const struct output *out, const char *name)
{
	char hint[64], all[NAMES_TEXT];

	join_names(group, all);
	snprintf(hint, sizeof(hint), "embeng %s --help lists the commands", group->verb);
	if (!name)
		return output_fail(out, CLI_USAGE, EINVAL, hint, "the command is missing; it is %s",
				   all);
	if (*name == '-')
		return output_fail(out, CLI_USAGE, EINVAL, hint,
				   "the command goes before '%s'; it is %s", name, all);
	return output_fail(out, CLI_USAGE, EINVAL, hint, "there is no command '%s'", name);
}

int group_run(const struct group *group, int argc, char **argv)
{
	struct output out = {.verb = group->verb};
	const char *name = argc > 1 ? argv[1] : NULL;
	char title[64];

	for (int i = 1; i < argc; i++)
		out.json |= !strcmp(argv[i], "--json") || !strcmp(argv[i], "-j");
	if (name && (!strcmp(name, "--help") || !strcmp(name, "-h"))) {
		print_group_help(group);
		return CLI_OK;
	}
	if (name && !strcmp(name, "--list-cmds")) {
		print_group_names(group);
		return CLI_OK;
	}
	for (size_t k = 0; name && k < group->count; k++) {
		if (strcmp(group->list[k].name, name) != 0)
			continue;
		snprintf(title, sizeof(title), "embeng %s %s", group->verb, name);
		argv[1] = title;
		return group->list[k].run(argc - 1, argv + 1);
	}
	return refuse_command(group, &out, name);
}
