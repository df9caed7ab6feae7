// SPDX-License-Identifier: MIT
/*
 * The verb `embeng checkpoint`: finds its command, and has what the commands share. Opening a
 * checkpoint, the argument DIR and some words of the output are shared.
 */
#include <errno.h>
#include <string.h>

#include "../frame/group.h"
#include "commands.h"

static const struct group_command list[] = {
	{"ls", "ls DIR", "show the tables: rows, dim, optimizer, slots, bytes", checkpoint_ls},
	{"verify", "verify DIR", "read and check every byte", checkpoint_verify},
	{"dump", "dump DIR TABLE[/SLOT]", "write rows as text or .npy", checkpoint_dump},
	{"compare", "compare DIR", "compare lookups of training and of serving, bit for bit",
	 checkpoint_compare},
	{"reshard", "reshard IN OUT", "write the same tables for another number of hosts",
	 checkpoint_reshard},
};

static const struct group group = {
	.verb = "checkpoint",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 24,
	.intro = "Usage: embeng checkpoint COMMAND DIR [OPTION...]\n"
		 "Inspect a checkpoint, or write it for another number of hosts. A checkpoint is\n"
		 "a folder that embeng train --save or embeng_save() wrote.\n",
	.end = "\nExamples:\n"
	       "  embeng checkpoint ls orders.ckpt\n"
	       "  embeng checkpoint verify orders.ckpt\n"
	       "  embeng checkpoint dump orders.ckpt items_in -o items.npy\n"
	       "  embeng checkpoint reshard orders.ckpt four.ckpt --hosts 4\n"
	       "  embeng checkpoint dump --help          show the options of a command\n\n"
	       "Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 11 corrupt.\n",
};

static error_t parse_dir(int key, char *arg, struct argp_state *state)
{
	const char **dir = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*dir) {
			argp_error(state, "the command takes one DIR; '%s' is a second", arg);
			return EINVAL;
		}
		*dir = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing; give the folder of a checkpoint");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int checkpoint_open(const struct output *out, const char *dir, struct embeng_checkpoint **c,
		    struct embeng_checkpoint_info *info)
{
	int err = embeng_checkpoint_open(dir, c, NULL);

	if (err)
		return output_library_failure(out, err, NULL);
	info->size = sizeof(*info);
	err = embeng_checkpoint_info(*c, info);
	if (err) {
		embeng_checkpoint_close(*c);
		return output_library_failure(out, err, NULL);
	}
	return CLI_OK;
}

int checkpoint_run(const struct checkpoint_command *command, int argc, char **argv)
{
	const struct argp argp = {.parser = parse_dir, .args_doc = "DIR", .doc = command->doc};
	struct output out = {.verb = "checkpoint", .command = command->name};
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	const char *dir = NULL;
	int code = command_parse(&argp, argc, argv, &out, &dir);

	if (!code)
		code = checkpoint_open(&out, dir, &c, &info);
	if (code)
		return code;
	code = command->run(&out, dir, c, &info);
	embeng_checkpoint_close(c);
	return code;
}

const char *checkpoint_sharding(enum embeng_sharding sharding)
{
	return sharding == EMBENG_SHARDING_MOD ? "mod" : "div";
}

const char *checkpoint_optimizer(const struct embeng_table_config *table)
{
	const char *text = embeng_optimizer_text(table->optimizer.kind);

	return text ? text : "none";
}

int cmd_checkpoint(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
