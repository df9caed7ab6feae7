/* SPDX-License-Identifier: MIT */
/* Verbs that have commands of their own: embeng checkpoint, config, fw. */
#ifndef CLI_GROUP_H
#define CLI_GROUP_H

#include <stddef.h>

/**
 * struct group_command - one of a verb's commands
 * @usage: name and arguments
 * @run: runs the command; argv[0] names verb and command
 */
struct group_command {
	const char *name, *usage, *summary;
	int (*run)(int argc, char **argv);
};

/**
 * struct group - a verb with its commands
 * @column: column at which summaries begin in the list of commands
 * @intro: text of the help before the list
 * @end: text of the help behind the list
 */
struct group {
	const char *verb;
	const struct group_command *list;
	size_t count;
	int column;
	const char *intro, *end;
};

/* Runs the command that argv[1] names, or prints the help. Return: the exit code. */
int group_run(const struct group *group, int argc, char **argv);

#endif
