/* SPDX-License-Identifier: MIT */
/* The code that the commands of embeng checkpoint share. */
#ifndef CLI_CHECKPOINT_COMMANDS_H
#define CLI_CHECKPOINT_COMMANDS_H

#include "../frame/command.h"
#include "embeng.h"

int checkpoint_ls(int argc, char **argv);
int checkpoint_list(int argc, char **argv);
int checkpoint_verify(int argc, char **argv);
int checkpoint_dump(int argc, char **argv);
int checkpoint_compare(int argc, char **argv);
int checkpoint_reshard(int argc, char **argv);
int checkpoint_compact(int argc, char **argv);
int checkpoint_grow(int argc, char **argv);
int checkpoint_rename(int argc, char **argv);
int checkpoint_step(int argc, char **argv);
int checkpoint_export(int argc, char **argv);
int checkpoint_import(int argc, char **argv);
int checkpoint_pack(int argc, char **argv);
int checkpoint_unpack(int argc, char **argv);

/**
 * struct checkpoint_command - a command whose one argument is DIR
 * @name: name of the command
 * @doc: text for its --help
 * @steps: whether it takes --step
 * @run: runs the command on the open checkpoint and returns the exit code
 */
struct checkpoint_command {
	const char *name, *doc;
	bool steps;
	int (*run)(const struct output *out, const char *dir, const struct embeng_checkpoint *c,
		   const struct embeng_checkpoint_info *info);
};

int checkpoint_run(const struct checkpoint_command *command, int argc, char **argv);

/* Opens a checkpoint. Return: 0, or an exit code after the failure was reported. */
int checkpoint_open(const struct output *out, const char *dir, struct embeng_checkpoint **c,
		    struct embeng_checkpoint_info *info);

/* The same for the newest checkpoint of @step, where @at_step is set. */
int checkpoint_open_at(const struct output *out, const char *dir, bool at_step, uint64_t step,
		       struct embeng_checkpoint **c, struct embeng_checkpoint_info *info);

/**
 * struct checkpoint_array - the parameters or a slot of a table
 * @table: index of the table
 * @slot: name of the slot; NULL: the parameters
 * @config: the table's config
 * @width: numbers that each row has, see embeng_model_slot_width()
 */
struct checkpoint_array {
	int table;
	const char *slot;
	struct embeng_table_config config;
	int64_t width;
};

/*
 * Finds what TABLE[/SLOT] means in a checkpoint; the slot's name stays the caller's. Return: 0, or an
 * exit code after the failure was reported.
 */
int checkpoint_find_array(const struct output *out, const char *dir,
			  const struct embeng_model *model, const char *what,
			  struct checkpoint_array *array);

/* The word for a sharding: "div" or "mod". */
const char *checkpoint_sharding(enum embeng_sharding sharding);

/* The name of a table's optimizer, such as "adagrad" or "none". */
const char *checkpoint_optimizer(const struct embeng_table_config *table);

#endif
