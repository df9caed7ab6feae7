// SPDX-License-Identifier: MIT
/*
 * Reads the index of a checkpoint and the header of one of its shards. The library reads the index,
 * with the shards beside it; the reader of tensor files lists what a shard has.
 *
 * Both open the file by its name again, so that what they say is of the file as it is then.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/document.h"
#include "../tensors/tensor.h"
#include "embeng.h"
#include "readers.h"

#define SCHEMA "embeng.checkpoint.index/"

bool index_is(const struct bytes *b)
{
	size_t look = b->size < 4096 ? b->size : 4096;

	return b->size && *b->data == '{' && memmem(b->data, look, SCHEMA, strlen(SCHEMA));
}

static void show_model(struct sheet *s, const struct embeng_model *model)
{
	for (size_t t = 0; t < embeng_model_table_count(model); t++) {
		struct embeng_table_config table = EMBENG_INIT(embeng_table_config);
		const char *optimizer;

		if (embeng_model_get_table(model, t, &table))
			continue;
		optimizer = embeng_optimizer_text(table.optimizer.kind);
		sheet_part(s, 0, "table %zu", t);
		sheet_says(s, "%s: %" PRId64 " rows of %" PRId64 ", optimizer %s", table.name,
			   (int64_t)table.vocabulary_size, (int64_t)table.dim,
			   optimizer ? optimizer : "none");
		for (size_t k = 0; k < embeng_model_slot_count(model, t); k++)
			sheet_text(s, 0, "slot", "%s", embeng_model_slot_name(model, t, k));
	}
}

static void note_library(struct sheet *s)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	sheet_odd(s, 0, "%s", error.text);
}

static void show_opened(struct sheet *s, const struct embeng_checkpoint *c)
{
	struct embeng_checkpoint_info info = EMBENG_INIT(embeng_checkpoint_info);

	if (embeng_checkpoint_info(c, &info)) {
		note_library(s);
		return;
	}
	sheet_text(s, 0, "step", "%" PRIu64, info.step);
	sheet_text(s, 0, "model_hash", "%016" PRIx64, info.model_hash);
	sheet_number(s, 0, "tables", info.table_count, NULL);
	sheet_number(s, 0, "files", info.file_count, NULL);
	sheet_number(s, 0, "bytes", info.bytes, NULL);
	sheet_number(s, 0, "deltas", info.deltas, NULL);
	sheet_verdict(s,
		      "A checkpoint of step %" PRIu64
		      " with %zu tables in %zu files. embeng checkpoint "
		      "verify reads all of it.",
		      info.step, info.table_count, info.file_count);
	show_model(s, embeng_checkpoint_model(c));
}

void index_read(struct sheet *s, const struct bytes *b)
{
	struct embeng_checkpoint *c;
	char *folder = strdup(b->path), *slash;

	if (!folder)
		document_no_memory();
	slash = strrchr(folder, '/');
	sheet_part(s, 0, "index");
	if (strcmp(slash ? slash + 1 : folder, "index.json") != 0) {
		sheet_odd(s, 0,
			  "the library reads an index under its own name: call it index.json, in a "
			  "folder with its shards");
		free(folder);
		return;
	}
	if (slash == folder)
		slash++;
	if (slash)
		*slash = '\0';
	if (embeng_checkpoint_open(slash ? folder : ".", &c, NULL)) {
		note_library(s);
	} else {
		show_opened(s, c);
		embeng_checkpoint_close(c);
	}
	free(folder);
}

bool shard_is(const struct bytes *b)
{
	return b->size > 9 && b->data[8] == '{' && bytes_number(b->data, 8) < 100000000 &&
	       bytes_number(b->data, 8) >= 2 && (b->data[9] == '"' || b->data[9] == '}');
}

void shard_read(struct sheet *s, const struct bytes *b)
{
	struct tensor_file f = {0};
	int err = tensor_file_open(&f, b->path);

	sheet_part(s, 0, "header");
	sheet_number(s, 0, "header_length", bytes_number(b->data, 8), "bytes");
	sheet_verdict(s, "A file of tensors (safetensors), as the shards of checkpoints are.");
	if (err)
		sheet_odd(s, 0, "%s", f.why);
	for (size_t i = 0; !err && i < f.count; i++) {
		const struct tensor *t = &f.list[i];

		sheet_part(s, t->at, "tensor %zu", i);
		sheet_says(s, "%s: %s of rank %zu", tensor_label(t), tensor_type_text(t->type),
			   t->rank);
		if (t->rank == 2) {
			sheet_number(s, t->at, "rows", t->shape[0], NULL);
			sheet_number(s, t->at, "columns", t->shape[1], NULL);
		}
	}
	tensor_file_close(&f);
}
