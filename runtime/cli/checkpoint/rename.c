// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint rename`: writes a checkpoint again with other names of tables. Nothing
 * but the names changes.
 */
#include <errno.h>
#include <string.h>

#include "edit.h"

static const struct argp_option options[] = {EDIT_OPTIONS, {0}};

static const char doc[] =
	"Give tables of a checkpoint other names.\v"
	"Each argument OLD=NEW names a table and its new name. All names change at once, so that\n"
	"two tables can swap theirs. Rows, slots and features stay what they are. The older\n"
	"checkpoint stays in the folder, as after a save.\n\n"
	"  embeng checkpoint rename orders.ckpt items_in=items\n"
	"  embeng checkpoint rename orders.ckpt a=b b=a -o swapped.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or no such table, 4 permission, 5 busy or disk full, 7 read\n"
	"or write error, 11 corrupt.";

/* The new name of @table in OLD=NEW, or NULL; a name may have equals signs of its own. */
static const char *match_name(const char *argument, const char *table)
{
	size_t length = strlen(table);

	return !strncmp(argument, table, length) && argument[length] == '=' ? argument + length + 1
									    : NULL;
}

static int change_name(struct edit *edit, size_t table, struct embeng_table_config *config)
{
	(void)table;
	for (size_t i = 0; i < edit->count; i++) {
		const char *name = match_name(edit->list[i], config->name);

		if (name) {
			config->name = name;
			return 0;
		}
	}
	return 0;
}

/* Each argument names a table that is there. */
static int check_renames(const struct edit *edit)
{
	const struct embeng_model *model = embeng_checkpoint_model(edit->from);

	for (size_t i = 0; i < edit->count; i++) {
		size_t found = 0;

		for (size_t t = 0; t < embeng_model_table_count(model); t++)
			found += match_name(edit->list[i], embeng_model_table_name(model, t)) !=
				 NULL;
		if (!found)
			return output_fail(edit->out, CLI_USAGE, ENOENT,
					   "embeng checkpoint ls shows the tables",
					   "'%s' is not OLD=NEW with OLD a table of %s",
					   edit->list[i], edit->dir);
	}
	return edit->count ? 0
			   : output_fail(edit->out, CLI_USAGE, EINVAL,
					 "Name a table and its new name: OLD=NEW",
					 "there is nothing to rename");
}

int checkpoint_rename(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = edit_parse_option,
					 .args_doc = "DIR OLD=NEW...",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "rename"};
	struct edit edit = {.out = &out};
	int code = command_parse(&argp, argc, argv, &out, &edit);

	if (!code)
		code = edit_open(&edit);
	if (!code)
		code = check_renames(&edit);
	if (!code)
		code = edit_model(&edit, change_name);
	if (!code)
		code = edit_write(&edit);
	edit_close(&edit);
	return code;
}
