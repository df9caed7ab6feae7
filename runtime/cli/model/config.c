// SPDX-License-Identifier: MIT
/*
 * The verb `embeng config`: finds its command. The commands are in config_show.c and
 * config_convert.c, and the reading of models in config_file.c.
 */
#include "../frame/group.h"
#include "config.h"

static const struct group_command list[] = {
	{"show", "show FILE", "show tables, features, engine, and unknown fields", config_show},
	{"convert", "convert FILE -o FILE", "convert a protobuf to a JSON model file, or back",
	 config_convert},
};

static const struct group group = {
	.verb = "config",
	.list = list,
	.count = sizeof(list) / sizeof(list[0]),
	.column = 22,
	.intro = "Usage: embeng config COMMAND FILE [OPTION...]\n"
		 "Show or convert a model file: a TPUEmbeddingConfiguration protobuf, or a JSON\n"
		 "file with the tables, features and engine of a conformance vector. No device\n"
		 "is needed.\n",
	.end = "\nExamples:\n"
	       "  embeng config show config.pb\n"
	       "  embeng config convert config.pb -o model.json\n"
	       "  embeng config convert model.json -o config.pb --batch=1024\n"
	       "  embeng config convert --help           show the options of a command\n\n"
	       "Exit status: 0 ok, 2 usage or the model is refused, 3 one of the formats does not\n"
	       "have an optimizer of the model, 4 permission, 11 the file is no such protobuf.\n",
};

int cmd_config(int argc, char **argv)
{
	return group_run(&group, argc, argv);
}
