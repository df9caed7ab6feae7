// SPDX-License-Identifier: MIT
/* embeng checkpoint COMMAND: finds the command. */
#include <errno.h>
#include <string.h>

#include "checkpoint.h"

static const struct {
	const char *name, *usage, *summary;
	int (*run)(int argc, char **argv);
} verbs[] = {
	{"ls", "ls DIR", "the tables: rows, dim, optimizer, slots, bytes", checkpoint_ls},
	{"verify", "verify DIR", "read and check every byte", checkpoint_verify},
	{"dump", "dump DIR TABLE[/SLOT]", "rows as text or .npy", checkpoint_dump},
};

#define COUNT (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(void)
{
	fputs("Usage: embeng checkpoint COMMAND DIR [OPTION...]\n"
	      "Look into a checkpoint: a folder that embeng train --save or embeng_save() wrote.\n\n"
	      "Commands:\n", stdout);
	for (size_t k = 0; k < COUNT; k++)
		printf("  %-24s %s\n", verbs[k].usage, verbs[k].summary);
	fputs("\nExamples:\n"
	      "  embeng checkpoint ls orders.ckpt\n"
	      "  embeng checkpoint verify orders.ckpt\n"
	      "  embeng checkpoint dump orders.ckpt items_in -o items.npy\n"
	      "  embeng checkpoint dump --help          a command's options\n\n"
	      "Exit status: 0 ok, 2 usage or no checkpoint there, 4 permission, 11 corrupt.\n", stdout);
}

error_t checkpoint_parse_dir(int key, char *arg, struct argp_state *state)
{
	const char **dir = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*dir) {
			argp_error(state, "one DIR is looked into, '%s' is a second", arg);
			return EINVAL;
		}
		*dir = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing: the checkpoint's folder");
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

const char *checkpoint_optimizer(const struct embeng_table_config *table)
{
	const char *text = embeng_optimizer_text(table->optimizer.kind);

	return text ? text : "none";
}

static int refuse(const struct output *out, const char *name)
{
	const char *hint = "embeng checkpoint --help lists the commands";

	if (!name)
		return output_fail(out, CLI_USAGE, EINVAL, hint, "which command? ls, verify or dump");
	if (*name == '-')
		return output_fail(out, CLI_USAGE, EINVAL, hint,
				   "the command goes before '%s': ls, verify or dump", name);
	return output_fail(out, CLI_USAGE, EINVAL, hint, "there is no command '%s'", name);
}

int cmd_checkpoint(int argc, char **argv)
{
	struct output out = {.verb = "checkpoint"};
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
		snprintf(title, sizeof(title), "embeng checkpoint %s", name);
		argv[1] = title;
		return verbs[k].run(argc - 1, argv + 1);
	}
	return refuse(&out, name);
}
