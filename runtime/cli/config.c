// SPDX-License-Identifier: MIT
/* embeng config COMMAND: finds the command. */
#include <errno.h>
#include <string.h>

#include "config.h"

static const struct {
	const char *name, *usage, *summary;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"show", "show FILE", "tables, features, engine, fields not known", config_show},
	{"convert", "convert FILE -o FILE", "of a protobuf a model file, or the other way",
	 config_convert},
};

#define COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(void)
{
	fputs("Usage: embeng config COMMAND FILE [OPTION...]\n"
	      "Models as TPUEmbeddingConfiguration protobufs, and as JSON: the tables, features and\n"
	      "engine of a conformance vector. No device is opened.\n\n"
	      "Commands:\n", stdout);
	for (size_t k = 0; k < COUNT; k++)
		printf("  %-22s %s\n", verbs[k].usage, verbs[k].summary);
	fputs("\nExamples:\n"
	      "  embeng config show config.pb\n"
	      "  embeng config convert config.pb -o model.json\n"
	      "  embeng config convert model.json -o config.pb --batch=1024\n"
	      "  embeng config convert --help           a command's options\n\n"
	      "Exit status: 0 ok, 2 usage or a model that is refused, 3 an optimizer that one of them\n"
	      "does not have, 4 permission, 11 bytes that are no such protobuf.\n", stdout);
}

static int refuse(const struct output *out, const char *name)
{
	const char *hint = "embeng config --help lists the commands";

	if (!name)
		return output_fail(out, CLI_USAGE, EINVAL, hint, "which command? show or convert");
	if (*name == '-')
		return output_fail(out, CLI_USAGE, EINVAL, hint,
				   "the command goes before '%s': show or convert", name);
	return output_fail(out, CLI_USAGE, EINVAL, hint, "there is no command '%s'", name);
}

int cmd_config(int argc, char **argv)
{
	struct output out = {.verb = "config"};
	const char *name = argc > 1 ? argv[1] : NULL;
	char title[64];

	for (int i = 1; i < argc; i++)
		out.json |= !strcmp(argv[i], "--json") || !strcmp(argv[i], "-j");
	if (name && (!strcmp(name, "--help") || !strcmp(name, "-h"))) {
		print_help();
		return CLI_OK;
	}
	for (size_t k = 0; name && k < COUNT; k++) {
		if (strcmp(verbs[k].name, name) != 0)
			continue;
		snprintf(title, sizeof(title), "embeng config %s", name);
		argv[1] = title;
		return verbs[k].run(argc - 1, argv + 1);
	}
	return refuse(&out, name);
}
