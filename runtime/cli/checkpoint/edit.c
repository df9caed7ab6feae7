// SPDX-License-Identifier: MIT
/*
 * The code that commands share which write a checkpoint again with something changed: their options,
 * the copy of the model, and the rows of the new checkpoint, which are those of the old one and, where
 * a table grew, those that its initializer gives.
 *
 * A struct edit lives for one call of the command. The folder is locked while it is written.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../../examples/item2vec/settings.h"
#include "../frame/interrupt.h"
#include "../frame/transfer.h"
#include "../lookup/row_names.h"
#include "edit.h"
#include "embeng/shard.h"

static error_t take_edit_argument(char *arg, struct edit *edit, struct argp_state *state)
{
	if (!edit->dir) {
		edit->dir = arg;
		return 0;
	}
	if (edit->count < EDIT_ARGUMENTS) {
		edit->list[edit->count++] = arg;
		return 0;
	}
	argp_error(state, "more than %d arguments; '%s' is too much", EDIT_ARGUMENTS, arg);
	return EINVAL;
}

static error_t read_edit_number(const char *name, const char *arg, int64_t least, int64_t most,
				int64_t *number, struct argp_state *state)
{
	char error[SETTING_ERROR];

	if (!whole_read(name, arg, least, most, number, error))
		return 0;
	argp_error(state, "%s", error);
	return EINVAL;
}

error_t edit_parse_option(int key, char *arg, struct argp_state *state)
{
	struct edit *edit = state->input;
	int64_t number = 0;
	error_t code;

	switch (key) {
	case 'o':
		edit->to = arg;
		return 0;
	case 'k':
		code = read_edit_number("keep", arg, 1, 1000, &number, state);
		edit->keep = (uint32_t)number;
		return code;
	case EDIT_KEY_STEP:
		edit->at_step = true;
		code = read_edit_number("step", arg, 0, INT64_MAX, &number, state);
		edit->from_step = (uint64_t)number;
		return code;
	case ARGP_KEY_ARG:
		return take_edit_argument(arg, edit, state);
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "DIR is missing; give the folder of a checkpoint");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int edit_open(struct edit *edit)
{
	int code = checkpoint_open_at(edit->out, edit->dir, edit->at_step, edit->from_step,
				      &edit->from, &edit->info);

	edit->step = edit->info.step;
	return code;
}

static int copy_tables(struct edit *edit, int (*change)(struct edit *edit, size_t table,
							struct embeng_table_config *config))
{
	const struct embeng_model *from = embeng_checkpoint_model(edit->from);

	for (size_t t = 0; t < embeng_model_table_count(from); t++) {
		struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
		int err = embeng_model_get_table(from, t, &config), code = 0;

		if (!err)
			code = change ? change(edit, t, &config) : 0;
		if (code)
			return code;
		if (!err)
			err = embeng_model_add_table(edit->model, &config);
		if (err < 0)
			return output_library_failure(edit->out, err, NULL);
	}
	return CLI_OK;
}

static int copy_features_as_they_are(struct edit *edit)
{
	const struct embeng_model *from = embeng_checkpoint_model(edit->from);
	int err = 0;

	for (size_t f = 0; err >= 0 && f < embeng_model_feature_count(from); f++) {
		struct embeng_feature_config config = EMBENG_INIT(embeng_feature_config);

		err = embeng_model_get_feature(from, f, &config);
		if (!err)
			err = embeng_model_add_feature(edit->model, &config);
	}
	return err < 0 ? output_library_failure(edit->out, err, NULL) : CLI_OK;
}

int edit_model(struct edit *edit,
	       int (*change)(struct edit *edit, size_t table, struct embeng_table_config *config))
{
	struct embeng_engine_config engine = EMBENG_INIT(embeng_engine_config);
	int err, code;

	edit->model = embeng_model_new();
	if (!edit->model)
		return output_fail(edit->out, CLI_DEVICE, ENOMEM, NULL, "no memory for a model");
	err = embeng_model_get_engine(embeng_checkpoint_model(edit->from), &engine);
	if (!err)
		err = embeng_model_set_engine(edit->model, &engine);
	if (err)
		return output_library_failure(edit->out, err, NULL);
	code = copy_tables(edit, change);
	return code ? code : copy_features_as_they_are(edit);
}

/* -- rows ---------------------------------------------------------------- */

/* The rows of one host with mod, and all of a table otherwise, as a shard and a place in it. */
static struct embeng_shard shard_of(const struct embeng_shard_rows *rows, int64_t *place)
{
	struct embeng_shard shard = EMBENG_INIT(embeng_shard, .hosts = 1);

	*place = rows->first;
	if (rows->stride > 1) {
		shard.sharding = EMBENG_SHARDING_MOD;
		shard.hosts = (uint32_t)rows->stride;
		shard.host = (uint32_t)(rows->first % rows->stride);
		*place = rows->first / rows->stride;
	}
	return shard;
}

static int64_t count_rows_before(const struct embeng_shard_rows *rows, int64_t end)
{
	int64_t count = rows->first < end ? (end - rows->first - 1) / rows->stride + 1 : 0;

	return count < rows->count ? count : rows->count;
}

static int give_rows(void *arg, int table, const char *slot, const struct embeng_shard_rows *rows,
		     float *data)
{
	struct edit *edit = arg;
	struct embeng_table_config old = EMBENG_INIT(embeng_table_config);
	const struct embeng_model *from = embeng_checkpoint_model(edit->from);
	int64_t place, saved, width = embeng_model_slot_width(from, table, slot);
	struct embeng_shard shard = shard_of(rows, &place);
	int err = embeng_model_get_table(from, (size_t)table, &old);

	saved = err ? 0 : count_rows_before(rows, old.vocabulary_size);
	if (!err && saved)
		err = embeng_checkpoint_read_shard(edit->from, table, slot, &shard, place,
						   (size_t)saved, data);
	if (!err && saved < rows->count)
		err = embeng_shard_start(edit->model, table, slot, &shard, place + saved,
					 (size_t)(rows->count - saved), data + saved * width);
	if (!err && edit->replace)
		err = edit->replace(edit, table, slot, rows, data);
	return err;
}

/* -- writing ------------------------------------------------------------- */

static int report_edit(const struct edit *edit)
{
	const struct embeng_model *model = edit->model;
	const char *to = edit->to ? edit->to : edit->dir;
	struct json_object *d, *tables;

	if (!edit->out->json) {
		printf("%s: step %" PRIu64 ", %zu tables\n", to, edit->step,
		       embeng_model_table_count(model));
		return CLI_OK;
	}
	d = json_document(edit->out);
	tables = json_object_new_array();
	json_add_text(d, "dir", edit->dir);
	json_add_text(d, "out", to);
	json_add_number(d, "step", edit->step);
	for (size_t t = 0; t < embeng_model_table_count(model); t++) {
		struct embeng_table_config config = EMBENG_INIT(embeng_table_config);
		struct json_object *table = json_object_new_object();

		embeng_model_get_table(model, t, &config);
		json_add_text(table, "name", config.name);
		json_add_number(table, "rows", (uint64_t)config.vocabulary_size);
		json_object_array_add(tables, table);
	}
	json_object_object_add(d, "tables", tables);
	return json_emit(d);
}

int edit_copy_row_names(const struct edit *edit)
{
	char why[ROW_NAMES_ERROR];
	int rc = edit->to ? row_names_copy(edit->dir, edit->from, edit->to, why) : 0;

	return rc && rc != -ENOENT ? output_fail(edit->out, exit_of_errno(rc), rc, NULL, "%s", why)
				   : CLI_OK;
}

int edit_write(struct edit *edit)
{
	struct transfer transfer = {.line = progress_start_slowly(!edit->out->json),
				    .cancels = true};
	const struct embeng_write_options options = EMBENG_INIT(
		embeng_write_options, .step = edit->step, .from = edit->from,
		.replaces = !edit->to && !edit->at_step,
		.save = {.size = sizeof(options.save),
			 .progress = transfer_progress,
			 .progress_arg = &transfer,
			 .program_state = edit->info.program_state,
			 .keep = edit->keep,
			 .flags = EMBENG_SAVE_NOT_FINITE});
	int err, code;

	interrupt_catch();
	err = embeng_checkpoint_write(edit->to ? edit->to : edit->dir, edit->model, give_rows, edit,
				      &options, NULL);
	progress_clear(&transfer.line);
	code = edit->failed;
	if (!code)
		code = err ? output_library_failure(edit->out, err, NULL)
			   : edit_copy_row_names(edit);
	if (!code && !edit->replace)
		code = report_edit(edit);
	interrupt_release();
	return code;
}

void edit_close(struct edit *edit)
{
	embeng_model_free(edit->model);
	embeng_checkpoint_close(edit->from);
}
