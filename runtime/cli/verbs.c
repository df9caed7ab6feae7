// SPDX-License-Identifier: MIT
/*
 * The table of verbs. A verb that is misspelt is answered with the nearest one.
 *
 * The table names a function of every folder, and every folder uses frame/, so it is outside of all
 * of them: nothing but main() and the tests of the table calls what is here.
 */
#include <string.h>

#include "frame/command.h"
#include "frame/edit_distance.h"

const struct command commands[] = {
	{"list", "list all devices, also those that cannot be opened", cmd_list},
	{"info", "show what a device is and what it can do", cmd_info},
	{"doctor", "check what keeps a device from being opened or makes it slow", cmd_doctor},
	{"top", "show what devices do, and for which programs", cmd_top},
	{"events", "show what happened to a device, and what happens now", cmd_events},
	{"regs", "show the registers of a device", cmd_regs},
	{"reset", "reset a device", cmd_reset},
	{"fault", "list, set or clear faults of an emulated device", cmd_fault},
	{"trace", "follow steps through the driver, with times", cmd_trace},
	{"plan", "compute how many bytes a model will need", cmd_plan},
	{"demo", "train on this machine's package data and answer a question", cmd_demo},
	{"train", "learn item embeddings from baskets or interactions", cmd_train},
	{"checkpoint", "list, verify, dump, compare or reshard a checkpoint", cmd_checkpoint},
	{"lookup", "look ids up in a checkpoint, without a device", cmd_lookup},
	{"config", "show or convert model files of TPU embeddings", cmd_config},
	{"fw", "pack, inspect, verify or sign a firmware image", cmd_fw},
	{"bench", "measure a device and the limits of the memory", cmd_bench},
	{"tune", "measure how rows are best fetched ahead on this machine", cmd_tune},
	{"report", "put what a helper needs to know into one archive", cmd_report},
	{"replay", "run a recording of a device again and compare", cmd_replay},
	{"decode", "say in words what a dump, trace, ring or blob holds", cmd_decode},
	{"vm", "run a command in a virtual machine with emulated devices", cmd_vm},
	{"conform", "run conformance vectors on a device", cmd_conform},
	{"validate", "check that a device is in order, part by part", cmd_validate},
};

const size_t command_count = sizeof(commands) / sizeof(commands[0]);

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < command_count; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

const struct command *command_nearest(const char *name)
{
	const struct command *best = NULL;
	size_t least = 3;

	for (size_t i = 0; i < command_count; i++) {
		size_t distance = edit_distance(name, commands[i].name);

		/* A word of which no letter is right means nothing. */
		if (distance < least && distance < strlen(name)) {
			least = distance;
			best = &commands[i];
		}
	}
	return best;
}
