// SPDX-License-Identifier: MIT
/*
 * The command `embeng checkpoint grow`: writes a checkpoint again with more rows in some of its tables.
 * New rows and their slots start as those of a new table do.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/item2vec/settings.h"
#include "edit.h"

enum { KEY_INIT = 0x100, KEY_SEED };

static const struct argp_option options[] = {
	{"init", KEY_INIT, "KIND", 0,
	 "Start new rows with constant:A, uniform:A:B or normal:MEAN:DEVIATION (a truncated normal "
	 "of deviation 1 / sqrt(dim))",
	 0},
	{"seed", KEY_SEED, "N", 0, "Seed of new rows (0: their table's name and number alone)", 0},
	EDIT_OPTIONS,
	{0}};

static const char doc[] =
	"Add rows to tables of a checkpoint.\v"
	"Each argument TABLE=ROWS names a table and the number of rows that it gets, which is at\n"
	"least what it has. The rows that are there keep their values and slots. The older\n"
	"checkpoint stays in the folder, as after a save.\n\n"
	"  embeng checkpoint grow orders.ckpt items=120000\n"
	"  embeng checkpoint grow orders.ckpt items=120000 --init constant:0 -o larger.ckpt\n\n"
	"Exit status: 0 ok, 2 usage or no such table, 4 permission, 5 busy or disk full, 7 read\n"
	"or write error, 11 corrupt.";

/* One or two numbers behind colons. */
static bool read_parameters(const char *text, size_t count, float *out)
{
	for (size_t i = 0; i < count; i++) {
		char *end;

		if (*text++ != ':')
			return false;
		out[i] = strtof(text, &end);
		if (end == text)
			return false;
		text = end;
	}
	return !*text;
}

static error_t parse_init(const char *arg, struct edit *edit, struct argp_state *state)
{
	static const struct {
		const char *name;
		enum embeng_initializer_name kind;
		size_t count;
	} kinds[] = {{"constant", EMBENG_INIT_CONSTANT, 1},
		     {"uniform", EMBENG_INIT_UNIFORM, 2},
		     {"normal", EMBENG_INIT_TRUNCATED_NORMAL, 2}};
	size_t length = strcspn(arg, ":");
	float numbers[2] = {0, 0};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strlen(kinds[i].name) != length || strncmp(kinds[i].name, arg, length) != 0 ||
		    !read_parameters(arg + length, kinds[i].count, numbers))
			continue;
		edit->init.kind = kinds[i].kind;
		edit->init.a = numbers[0];
		edit->init.b = numbers[1];
		return 0;
	}
	argp_error(state, "--init takes constant:A, uniform:A:B or normal:MEAN:DEVIATION, not '%s'",
		   arg);
	return EINVAL;
}

static error_t parse_grow_option(int key, char *arg, struct argp_state *state)
{
	struct edit *edit = state->input;
	char error[SETTING_ERROR];
	int64_t seed;

	if (key == KEY_INIT)
		return parse_init(arg, edit, state);
	if (key != KEY_SEED)
		return edit_parse_option(key, arg, state);
	if (whole_read("seed", arg, 1, INT64_MAX, &seed, error)) {
		argp_error(state, "%s", error);
		return EINVAL;
	}
	edit->init.seed = (uint64_t)seed;
	return 0;
}

/* The rows in TABLE=ROWS if it is about @table, or NULL. */
static const char *match_table(const char *argument, const char *table)
{
	const char *equals = strrchr(argument, '=');
	size_t length = strlen(table);

	return equals && (size_t)(equals - argument) == length && !strncmp(argument, table, length)
		       ? equals + 1
		       : NULL;
}

static int grow_table(struct edit *edit, const char *text, struct embeng_table_config *config)
{
	char error[SETTING_ERROR];
	int64_t rows;

	if (whole_read("ROWS", text, 1, INT64_MAX, &rows, error))
		return output_fail(edit->out, CLI_USAGE, EINVAL, NULL, "table '%s': %s",
				   config->name, error);
	if (rows < config->vocabulary_size)
		return output_fail(edit->out, CLI_USAGE, ERANGE,
				   "A table can only grow: rows that are cut off are lost",
				   "table '%s' has %" PRId64 " rows, which are more than %" PRId64,
				   config->name, config->vocabulary_size, rows);
	config->vocabulary_size = rows;
	if (edit->init.kind)
		config->initializer = edit->init;
	else if (edit->init.seed)
		config->initializer.seed = edit->init.seed;
	return 0;
}

static int change_rows(struct edit *edit, size_t table, struct embeng_table_config *config)
{
	(void)table;
	for (size_t i = 0; i < edit->count; i++) {
		const char *rows = match_table(edit->list[i], config->name);

		if (rows)
			return grow_table(edit, rows, config);
	}
	return 0;
}

/* Each argument names a table that is there. */
static int check_growth(const struct edit *edit)
{
	const struct embeng_model *model = embeng_checkpoint_model(edit->from);

	for (size_t i = 0; i < edit->count; i++) {
		size_t found = 0;

		for (size_t t = 0; t < embeng_model_table_count(model); t++)
			found += match_table(edit->list[i], embeng_model_table_name(model, t)) !=
				 NULL;
		if (!found)
			return output_fail(edit->out, CLI_USAGE, ENOENT,
					   "embeng checkpoint ls shows the tables",
					   "'%s' is not TABLE=ROWS with a table of %s",
					   edit->list[i], edit->dir);
	}
	return edit->count ? 0
			   : output_fail(edit->out, CLI_USAGE, EINVAL,
					 "Name a table and its number of rows: TABLE=ROWS",
					 "there is no table to grow");
}

int checkpoint_grow(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_grow_option,
					 .args_doc = "DIR TABLE=ROWS...",
					 .doc = doc};
	struct output out = {.verb = "checkpoint", .command = "grow"};
	struct edit edit = {.out = &out};
	int code = command_parse(&argp, argc, argv, &out, &edit);

	if (!code)
		code = edit_open(&edit);
	if (!code)
		code = check_growth(&edit);
	if (!code)
		code = edit_model(&edit, change_rows);
	if (!code)
		code = edit_write(&edit);
	edit_close(&edit);
	return code;
}
