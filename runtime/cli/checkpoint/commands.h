/* SPDX-License-Identifier: MIT */
/* What the commands of embeng checkpoint have in common. */
#ifndef CLI_CHECKPOINT_COMMANDS_H
#define CLI_CHECKPOINT_COMMANDS_H

#include "../frame/command.h"
#include "embeng.h"

int checkpoint_ls(int argc, char **argv);
int checkpoint_verify(int argc, char **argv);
int checkpoint_dump(int argc, char **argv);
int checkpoint_compare(int argc, char **argv);
int checkpoint_reshard(int argc, char **argv);

/**
 * struct checkpoint_command - a command whose one argument is DIR
 * @name: of the command
 * @doc: of its --help
 * @run: with the open checkpoint; returns the exit code
 */
struct checkpoint_command {
	const char *name, *doc;
	int (*run)(const struct output *out, const char *dir, const struct embeng_checkpoint *c,
		   const struct embeng_checkpoint_info *info);
};

int checkpoint_run(const struct checkpoint_command *command, int argc, char **argv);

/* 0, or the exit code of a failure that is reported. */
int checkpoint_open(const struct output *out, const char *dir, struct embeng_checkpoint **c,
		    struct embeng_checkpoint_info *info);

/* "div", "mod" */
const char *checkpoint_sharding(enum embeng_sharding sharding);

/* "adagrad", "none" */
const char *checkpoint_optimizer(const struct embeng_table_config *table);

#endif
