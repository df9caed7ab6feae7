// SPDX-License-Identifier: MIT
/*
 * The verb `embeng checkpoint`: the list of its commands, and their help. The code that the commands
 * share is in common.c.
 */
#include "../frame/group.h"
#include "commands.h"

static const struct group_command list[] = {
	{"ls", "ls DIR", "show the tables: rows, dim, optimizer, slots, bytes", checkpoint_ls},
	{"list", "list DIR", "show the checkpoints in a folder, the newest first", checkpoint_list},
	{"verify", "verify DIR", "read and check every byte", checkpoint_verify},
	{"dump", "dump DIR TABLE[/SLOT]", "write rows as text or .npy", checkpoint_dump},
	{"compare", "compare DIR", "compare lookups of training and of serving, bit for bit",
	 checkpoint_compare},
	{"reshard", "reshard IN OUT", "write the same tables for another number of hosts",
	 checkpoint_reshard},
	{"step", "step DIR [STEP]", "show or set the step", checkpoint_step},
	{"compact", "compact DIR", "fold deltas into a full checkpoint", checkpoint_compact},
	{"grow", "grow DIR TABLE=ROWS", "add rows to tables", checkpoint_grow},
	{"rename", "rename DIR OLD=NEW", "give tables other names", checkpoint_rename},
	{"export", "export DIR TABLE -o FILE", "write tables as .npy or .safetensors",
	 checkpoint_export},
	{"pack", "pack DIR", "write a checkpoint as one stream, for a pipe", checkpoint_pack},
	{"unpack", "unpack FILE DIR", "make a folder of such a stream", checkpoint_unpack},
	{"import", "import FILE... -o DIR", "make a checkpoint of the tensors in files",
	 checkpoint_import},
};

static const struct group group = {
	.verb = "checkpoint",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 24,
	.intro = "Usage: embeng checkpoint COMMAND DIR [OPTION...]\n"
		 "Inspect a checkpoint, or write it again with something changed. A checkpoint is\n"
		 "a folder that embeng train --save or embeng_save() wrote.\n",
	.end = "\nExamples:\n"
	       "  embeng checkpoint ls orders.ckpt\n"
	       "  embeng checkpoint verify orders.ckpt\n"
	       "  embeng checkpoint dump orders.ckpt items_in -o items.npy\n"
	       "  embeng checkpoint reshard orders.ckpt four.ckpt --hosts 4\n"
	       "  embeng checkpoint import model.pt -o words.ckpt\n"
	       "  embeng checkpoint dump --help          show the options of a command\n\n"
	       "Exit status: 0 ok, 2 usage or no checkpoint in DIR, 4 permission, 11 corrupt.\n",
};

int cmd_checkpoint(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
