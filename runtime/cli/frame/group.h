/* SPDX-License-Identifier: MIT */
/* Verbs that have commands of their own: embeng checkpoint, config, fw. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include <stddef.h>

/**
 * struct group_command - what follows the verb
 * @usage: its name and what it takes
 * @run: gets an argv[0] that names verb and command
 */
struct group_command {
	const char *name, *usage, *summary;
	int (*run)(int argc, char **argv);
};

/**
 * struct group - a verb
 * @column: where summaries begin in the list of commands
 * @intro: of the help, before the list
 * @end: of the help, behind it
 */
struct group {
	const char *verb;
	const struct group_command *list;
	size_t count;
	int column;
	const char *intro, *end;
};

/* Runs what argv[1] names, or prints the help. Return: the exit code. */
int group_run(const struct group *group, int argc, char **argv);

#endif
