// SPDX-License-Identifier: MIT
/*
 * The commands of `embeng checkpoint` share this: opening a checkpoint, the arguments DIR and
 * TABLE[/SLOT], and some words of the output.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/item2vec/settings.h"
#include "commands.h"

enum { KEY_STEP = 0x100 };

struct checkpoint_arguments {
	const char *dir;
	bool at_step;
	int64_t step;
};

static const struct argp_option step_option[] = {
	{"step", KEY_STEP, "N", 0, "Take the newest checkpoint of step N, see list", 0},
	{0},
};

static error_t parse_step(const char *arg, struct checkpoint_arguments *a, struct argp_state *state)
{
	char error[SETTING_ERROR];

	if (whole_read("step", arg, 0, INT64_MAX, &a->step, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	a->at_step = true;
	return 0;
}

static error_t parse_dir(int key, char *arg, struct argp_state *state)
{
	struct checkpoint_arguments *a = state->input;

	switch (key) {
	case KEY_STEP:
		return parse_step(arg, a, state);
	case ARGP_KEY_ARG:
		return argument_take(&a->dir, arg, "DIR", state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing; give the folder of a checkpoint");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int tell_opened(const struct output *out, int err, struct embeng_checkpoint **c,
		       struct embeng_checkpoint_info *info)
{
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

int checkpoint_open(const struct output *out, const char *dir, struct embeng_checkpoint **c,
		    struct embeng_checkpoint_info *info)
{
	return tell_opened(out, embeng_checkpoint_open(dir, c, NULL), c, info);
}

int checkpoint_open_at(const struct output *out, const char *dir, bool at_step, uint64_t step,
		       struct embeng_checkpoint **c, struct embeng_checkpoint_info *info)
{
	if (!at_step)
		return checkpoint_open(out, dir, c, info);
	return tell_opened(out, embeng_checkpoint_open_step(dir, step, c, NULL), c, info);
}

int checkpoint_run(const struct checkpoint_command *command, int argc, char **argv)
{
	const struct argp argp = {.options = command->steps ? step_option : NULL,
				  .parser = parse_dir,
				  .args_doc = "DIR",
				  .doc = command->doc};
	struct output out = {.verb = "checkpoint", .command = command->name};
	struct embeng_checkpoint_info info;
	struct embeng_checkpoint *c;
	struct checkpoint_arguments a = {0};
	int code = command_parse(&argp, argc, argv, &out, &a);

	if (!code)
		code = checkpoint_open_at(&out, a.dir, a.at_step, (uint64_t)a.step, &c, &info);
	if (code)
		return code;
	code = command->run(&out, a.dir, c, &info);
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

/* A table by its whole name, else what stands before the last slash, and its slot. */
static int find_array_table(const struct output *out, const char *dir,
			    const struct embeng_model *model, const char *what,
			    struct checkpoint_array *array)
{
	const char *slash = strrchr(what, '/');
	char *name;

	array->slot = NULL;
	array->table = embeng_model_table(model, what);
	if (array->table < 0 && slash) {
		name = strndup(what, (size_t)(slash - what));
		if (!name)
			return output_fail(out, CLI_DEVICE, ENOMEM, NULL,
					   "no memory for the name of a table");
		array->table = embeng_model_table(model, name);
		array->slot = slash + 1;
		free(name);
	}
	if (array->table < 0)
		return output_fail(out, CLI_USAGE, ENOENT, "embeng checkpoint ls shows the tables",
				   "%s: there is no table '%s'", dir, what);
	array->config.size = sizeof(array->config);
	embeng_model_get_table(model, (size_t)array->table, &array->config);
	return CLI_OK;
}

int checkpoint_find_array(const struct output *out, const char *dir,
			  const struct embeng_model *model, const char *what,
			  struct checkpoint_array *array)
{
	int code = find_array_table(out, dir, model, what, array);
	size_t count;

	array->width = array->config.dim;
	if (code || !array->slot)
		return code;
	if (!strcmp(array->slot, "parameters")) {
		array->slot = NULL;
		return CLI_OK;
	}
	count = embeng_model_slot_count(model, (size_t)array->table);
	for (size_t k = 0; k < count; k++) {
		if (!strcmp(embeng_model_slot_name(model, (size_t)array->table, k), array->slot)) {
			array->width = embeng_model_slot_width(model, array->table, array->slot);
			return CLI_OK;
		}
	}
	return output_fail(out, CLI_USAGE, ENOENT, "embeng checkpoint ls shows the slots",
			   "%s: table '%s' has no slot '%s'", dir, array->config.name, array->slot);
}
