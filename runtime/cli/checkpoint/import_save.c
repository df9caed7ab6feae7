// SPDX-License-Identifier: MIT
/*
 * Writes a checkpoint whose rows come from files of tensors, without a device: the library asks for
 * rows piece by piece, and the files give them.
 *
 * The model and struct import_work live for one call.
 */
#include <errno.h>

#include "../frame/interrupt.h"
#include "../frame/transfer.h"
#include "import.h"

/* @failed: the exit code of a file that could not be read, which was reported */
struct import_work {
	const struct output *out;
	const struct import_table *tables;
	size_t count;
	struct embeng_model *model;
	int failed;
};

static int add_import_table(struct embeng_model *model, const struct import_table *table, size_t i)
{
	const struct embeng_table_config t = EMBENG_INIT(
		embeng_table_config, .name = table->name,
		.vocabulary_size = (int64_t)table->tensor->shape[0],
		.dim = (int64_t)table->tensor->shape[1], .combiner = EMBENG_SUM);
	const struct embeng_feature_config f = EMBENG_INIT(embeng_feature_config,
							   .name = table->name, .table = (int)i);
	int ret = embeng_model_add_table(model, &t);

	ret = ret < 0 ? ret : embeng_model_add_feature(model, &f);
	return ret < 0 ? ret : 0;
}

static int make_import_model(struct import_work *w)
{
	int ret;

	w->model = embeng_model_new();
	ret = w->model ? 0 : -ENOMEM;
	for (size_t i = 0; !ret && i < w->count; i++)
		ret = add_import_table(w->model, &w->tables[i], i);
	return ret ? output_library_failure(w->out, ret, NULL) : CLI_OK;
}

/* An embeng_checkpoint_fn. One host has all rows, one after another. */
static int give_imported_rows(void *arg, int table, const char *slot,
			      const struct embeng_shard_rows *rows, float *data)
{
	struct import_work *w = arg;
	const struct import_table *from = &w->tables[table];
	int ret = tensor_rows(from->file, from->tensor, (uint64_t)rows->first, (size_t)rows->count,
			      data);

	(void)slot;
	if (ret)
		w->failed = output_fail(w->out, exit_of_errno(ret), ret, NULL, "%s",
					from->file->why);
	return ret;
}

static int write_import(struct import_work *w, const char *dir)
{
	struct transfer transfer = {.line = progress_start_slowly(!w->out->json), .cancels = true};
	const struct embeng_write_options options = EMBENG_INIT(
		embeng_write_options, .save = {.size = sizeof(options.save),
					       .progress = transfer_progress,
					       .progress_arg = &transfer});
	int ret;

	interrupt_catch();
	ret = embeng_checkpoint_write(dir, w->model, give_imported_rows, w, &options, NULL);
	progress_clear(&transfer.line);
	interrupt_release();
	if (w->failed)
		return w->failed;
	return ret ? output_library_failure(w->out, ret, NULL) : CLI_OK;
}

int import_save(const struct output *out, const char *dir, const struct import_table *tables,
		size_t count)
{
	struct import_work w = {.out = out, .tables = tables, .count = count};
	int code = make_import_model(&w);

	code = code ? code : write_import(&w, dir);
	embeng_model_free(w.model);
	return code;
}
