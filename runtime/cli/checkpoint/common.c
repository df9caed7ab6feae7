// SPDX-License-Identifier: MIT
/*
 * The commands of `embeng checkpoint` share this: opening a checkpoint, the argument DIR and some
 * words of the output.
 */
#include <errno.h>

#include "commands.h"

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
