// SPDX-License-Identifier: MIT
/* embeng config COMMAND: finds the command. */
#include "config.h"
#include "group.h"

static const struct group_command list[] = {
	{"show", "show FILE", "tables, features, engine, fields not known", config_show},
	{"convert", "convert FILE -o FILE", "of a protobuf a model file, or the other way",
	 config_convert},
};

static const struct group group = {
	.verb = "config",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 22,
	.intro = "Usage: embeng config COMMAND FILE [OPTION...]\n"
		 "Models as TPUEmbeddingConfiguration protobufs, and as JSON: the tables, features and\n"
		 "engine of a conformance vector. No device is opened.\n",
	.end = "\nExamples:\n"
	       "  embeng config show config.pb\n"
	       "  embeng config convert config.pb -o model.json\n"
	       "  embeng config convert model.json -o config.pb --batch=1024\n"
	       "  embeng config convert --help           a command's options\n\n"
	       "Exit status: 0 ok, 2 usage or a model that is refused, 3 an optimizer that one of them\n"
	       "does not have, 4 permission, 11 bytes that are no such protobuf.\n",
};

int cmd_config(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
