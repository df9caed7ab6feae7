/* SPDX-License-Identifier: MIT */
/* Commands that write a checkpoint again with something changed: grow, rename, step, import. */
#ifndef CLI_CHECKPOINT_EDIT_H
#define CLI_CHECKPOINT_EDIT_H

#include "commands.h"

#define EDIT_ARGUMENTS 256
#define EDIT_KEY_STEP 0x500

/**
 * struct edit - a command's arguments, then what it works on
 * @to: folder to write to, or NULL: @dir
 * @list: [count] the arguments behind DIR
 * @from: the checkpoint, open
 * @model: the changed model
 * @step: the step to write
 * @replace: NULL, or called for all rows to change some of them; returns 0, or an errno after
 *	@failed was set. Its command reports what it has changed
 * @arg: for @replace
 * @failed: exit code of a failure that was reported, or 0
 */
struct edit {
	const struct output *out;
	const char *dir, *to;
	uint32_t keep;
	bool at_step;
	uint64_t from_step;
	const char *list[EDIT_ARGUMENTS];
	size_t count;
	struct embeng_initializer init;
	struct embeng_checkpoint *from;
	struct embeng_checkpoint_info info;
	struct embeng_model *model;
	uint64_t step;
	int (*replace)(struct edit *edit, int table, const char *slot,
		       const struct embeng_shard_rows *rows, float *data);
	void *arg;
	int failed;
};

/* Options of all of them; a command adds its own before {0}. */
#define EDIT_OPTIONS \
	{"output", 'o', "OUT", 0, "Write to folder OUT instead of DIR", 0}, \
		{"keep", \
		 'k', \
		 "N", \
		 0, \
		 "Number of checkpoints that the folder keeps, this one included (2)", \
		 0}, \
		{"step", \
		 EDIT_KEY_STEP, \
		 "N", \
		 0, \
		 "Read the newest checkpoint of step N, see list; not the current one", \
		 0}

/* Reads the options and arguments that they share. @input is a struct edit. */
error_t edit_parse_option(int key, char *arg, struct argp_state *state);

/* Opens DIR. Return: 0, or an exit code after a report. */
int edit_open(struct edit *edit);

/**
 * edit_model() - copy the model, table by table, with something changed
 * @change: changes the configuration of a table; returns 0, or an exit code after a report
 */
int edit_model(struct edit *edit,
	       int (*change)(struct edit *edit, size_t table, struct embeng_table_config *config));

/* Writes the checkpoint with the changed model, and reports. Return: the exit code. */
int edit_write(struct edit *edit);

/* The names of rows go with the checkpoint to another folder. Return: 0, or an exit code. */
int edit_copy_row_names(const struct edit *edit);

/* Frees all of it. */
void edit_close(struct edit *edit);

#endif
