// SPDX-License-Identifier: MIT
/*
 * Opens and closes checkpoints: reads the index and opens the shards it names (shards.c). A save may
 * replace the index meanwhile, so the opening is tried again if a shard is gone.
 *
 * A checkpoint belongs to the caller until embeng_checkpoint_close(), and its maps live as long.
 * After it is open it is only read, and any number of threads may do that.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "open.h"
#include "session/session.h"
#include "stream.h"

/* An index that keeps changing while its shards are opened: savers are at work. */
#define TRIES 100

static size_t arrays_of(const struct embeng_checkpoint *c, size_t table)
{
	return 1 + c->index.model->tables[table].slot_count;
}

static void fill_pieces(struct embeng_checkpoint *c, struct table_files *t, size_t arrays)
{
	for (size_t k = 0; k < arrays * t->count; k++) {
		const struct index_file *f = &c->index.files[t->first + k % t->count];
		uint64_t at = f->at[k / t->count];

		t->pieces[k] = (struct checkpoint_piece){
			.first = f->first,
			.count = f->rows,
			.stride = f->stride,
			.file = f->home,
			.offset = at,
		};
	}
}

/* Files are in table order, so that each table has a run of them. */
static int find_pieces(struct embeng_checkpoint *c)
{
	size_t tables = c->index.model->table_count, file = 0, pieces = 0;

	c->tables = calloc(tables + 1, sizeof(*c->tables));
	for (size_t i = 0; i < c->index.base_count; i++)
		pieces += arrays_of(c, c->index.files[i].table);
	c->pieces = calloc(pieces + 1, sizeof(*c->pieces));
	if (!c->tables || !c->pieces)
		return fail(-ENOMEM, "no memory to open a checkpoint");
	pieces = 0;
	for (size_t t = 0; t < tables; t++) {
		struct table_files *files = &c->tables[t];

		files->first = file;
		while (file < c->index.base_count && c->index.files[file].table == t)
			file++;
		files->count = file - files->first;
		files->pieces = c->pieces + pieces;
		pieces += arrays_of(c, t) * files->count;
		fill_pieces(c, files, arrays_of(c, t));
	}
	return 0;
}

/* Drops all that one look at the folder found, for the next try. */
static void forget_folder(struct embeng_checkpoint *c)
{
	shards_close(c);
	checkpoint_close_deltas(c);
	free(c->tables);
	free(c->pieces);
	index_free(&c->index);
	*c = (struct embeng_checkpoint){.folder = c->folder, .spool = c->spool};
}

static int open_index(struct embeng_checkpoint *c, const char *path, const char *text,
		      size_t length)
{
	int ret = index_parse(text, length, path, &c->index);

	ret = ret ? ret : shards_open(c);
	ret = ret ? ret : find_pieces(c);
	ret = ret ? ret : checkpoint_open_deltas(c);
	c->opened = !ret;
	return ret;
}

/* The error of the last try names the shard. */
static int shard_is_gone(const char *path)
{
	struct embeng_error last = {.size = sizeof(last)};

	embeng_last_error(&last);
	return fail(-EBADMSG, "%s: names a shard that is not there: %s", path, last.text);
}

/*
 * A saver removes the shards of the index that it replaced. Where one is gone, look
 * whether the index is another by now; if it is not, the checkpoint is broken.
 */
static int open_latest(struct embeng_checkpoint *c, const char *path)
{
	size_t length, previous_length = 0;
	char *text, *previous = NULL;
	int ret = 0;

	for (int i = 0; i < TRIES; i++) {
		ret = file_read_whole(path, INDEX_BYTES_MAX, &text, &length);
		if (ret)
			break;
		if (previous && length == previous_length && !memcmp(text, previous, length)) {
			free(text);
			ret = shard_is_gone(path);
			break;
		}
		free(previous);
		previous = text;
		previous_length = length;
		ret = open_index(c, path, text, length);
		if (ret != -ENOENT)
			break;
		forget_folder(c);
	}
	free(previous);
	return ret;
}

static int open_named(struct embeng_checkpoint *c, const char *path)
{
	size_t length;
	char *text;
	int ret = file_read_whole(path, INDEX_BYTES_MAX, &text, &length);

	if (ret)
		return ret;
	ret = open_index(c, path, text, length);
	free(text);
	return ret;
}

/* @opening reads the index @name in the folder. */
static int open_folder(const char *dir, const char *name, struct embeng_checkpoint **out,
		       int (*opening)(struct embeng_checkpoint *c, const char *path))
{
	struct embeng_checkpoint *c = calloc(1, sizeof(*c));
	char *path;
	int ret;

	if (!c)
		return fail(-ENOMEM, "no memory to open a checkpoint");
	c->folder = strdup(dir);
	path = c->folder ? file_path(dir, name) : NULL;
	ret = path ? opening(c, path) : fail(-ENOMEM, "no memory to open a checkpoint");
	free(path);
	if (ret)
		embeng_checkpoint_close(c);
	else
		*out = c;
	return ret;
}

int checkpoint_open_index(const char *dir, const char *name, struct embeng_checkpoint **out)
{
	return open_folder(dir, name, out, open_named);
}

int checkpoint_open_spool(struct spool *spool, const char *text, size_t length,
			  struct embeng_checkpoint **out)
{
	struct embeng_checkpoint *c = calloc(1, sizeof(*c));
	char *path;
	int ret;

	if (!c) {
		spool_free(spool);
		return fail(-ENOMEM, "no memory to open a checkpoint");
	}
	c->spool = spool;
	c->folder = strdup(STREAM_NAME);
	path = c->folder ? file_path(c->folder, INDEX_NAME) : NULL;
	ret = path ? open_index(c, path, text, length)
		   : fail(-ENOMEM, "no memory to open a checkpoint");
	free(path);
	if (ret)
		embeng_checkpoint_close(c);
	else
		*out = c;
	return ret;
}

static int open_new_checkpoint(const char *dir, struct embeng_checkpoint **out)
{
	if (!dir || !out)
		return fail(-EINVAL, "embeng_checkpoint_open: dir and out must be given");
	return open_folder(dir, INDEX_NAME, out, open_latest);
}

int embeng_checkpoint_open(const char *dir, struct embeng_checkpoint **out,
			   struct embeng_error *error)
{
	int ret = open_new_checkpoint(dir, out);

	if (ret)
		give_error(error);
	return ret;
}

void embeng_checkpoint_close(struct embeng_checkpoint *c)
{
	if (!c)
		return;
	forget_folder(c);
	spool_free(c->spool);
	free(c->folder);
	free(c);
}

int embeng_checkpoint_info(const struct embeng_checkpoint *c, struct embeng_checkpoint_info *info)
{
	if (!c || !info || info->size < sizeof(*info))
		return fail(-EINVAL,
			    "embeng_checkpoint_info: a checkpoint and info, with its size, must be "
			    "given");
	*info = (struct embeng_checkpoint_info){
		.size = info->size,
		.step = c->index.step,
		.model_hash = c->index.model_hash,
		.table_count = c->index.model->table_count,
		.file_count = shards_count(c),
		.bytes = c->index.bytes,
		.chunk_count = c->index.chunk_count,
		.program_state = c->index.program_state,
		.deltas = delta_count(&c->index),
	};
	return 0;
}

int embeng_checkpoint_finite(const struct embeng_checkpoint *c, int table)
{
	const struct embeng_model *m = embeng_checkpoint_model(c);

	if (!m)
		return fail(-EINVAL, "embeng_checkpoint_finite: no checkpoint given");
	if (table < 0 || (size_t)table >= m->table_count)
		return fail(-ENOENT,
			    "embeng_checkpoint_finite: the checkpoint has no table %d, it has %zu",
			    table, m->table_count);
	if (c->index.finite[table] == INDEX_FINITE_UNKNOWN)
		return fail(-ENODATA, "%s: its index does not say whether table %s is finite",
			    c->folder, m->tables[table].name);
	return c->index.finite[table] == INDEX_FINITE;
}

const struct embeng_model *embeng_checkpoint_model(const struct embeng_checkpoint *c)
{
	return c ? c->index.model : NULL;
}
