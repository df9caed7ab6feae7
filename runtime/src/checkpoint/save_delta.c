// SPDX-License-Identifier: MIT
/*
 * Plans a save that writes only the rows that differ from the checkpoint in the folder. They are found
 * by comparing all rows with it, bit by bit: so it does not matter who changed a row, or which process
 * saved before, and the checkpoint under the delta has been checked.
 *
 * The base and the marks of rows belong to the struct save. Called with the lock of the folder held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "save.h"

/* Notes why the save is a full one. */
static int decline_delta(struct save *s, const char *why)
{
	save_drop_base(s);
	save_forget_marks(s);
	snprintf(s->why_full, sizeof(s->why_full), "%s", why);
	log_say(&s->e->log, EMBENG_LOG_INFO, "embeng_save: saved in full: %s", why);
	return 0;
}

/* The base cannot be read; the last error says why. */
static int decline_unreadable(struct save *s, int code)
{
	struct embeng_error error = {.size = sizeof(error)};

	embeng_last_error(&error);
	return code == -ENOMEM ? code : decline_delta(s, error.text);
}

static bool has_same_rows(const struct table *a, const struct table *b)
{
	return !strcmp(a->name, b->name) && a->rows == b->rows && a->dim == b->dim &&
	       a->slot_count == b->slot_count && a->optimizer.kind == b->optimizer.kind;
}

/* Whether the checksums of all chunks are in the shards, as they are in those of this version. */
static bool has_all_tables(const struct index *index)
{
	for (size_t i = 0; i < index->file_count; i = next_home(index, i)) {
		if (!index->files[i].table_at)
			return false;
	}
	return true;
}

/* NULL if a delta of the engine's tables fits behind @base, else what does not. */
static const char *find_misfit(const struct save *s, const struct index *base)
{
	const struct embeng_model *m = s->index.model, *old = base->model;

	if (base->model_hash != s->index.model_hash || m->table_count != old->table_count)
		return "the folder has a checkpoint of another model";
	for (size_t t = 0; t < m->table_count; t++) {
		if (!has_same_rows(&m->tables[t], &old->tables[t]))
			return "the folder has a checkpoint of another model";
	}
	if (m->engine.hosts != old->engine.hosts || m->engine.sharding != old->engine.sharding)
		return "the folder has a checkpoint of another sharding";
	if (base->chunk_bytes != CHUNK_BYTES || !has_all_tables(base))
		return "the folder has a checkpoint of an older version";
	return delta_count(base) < DELTAS_MAX ? NULL
					      : "the folder has as many deltas as are allowed";
}

int save_find_base(struct save *s)
{
	const char *misfit;
	int ret;

	if (!(s->options.flags & EMBENG_SAVE_DELTA))
		return 0;
	if (s->hosts)
		return decline_delta(s, "the hosts of a group save in full");
	if (!s->old_text)
		return decline_delta(s, "the folder has no checkpoint");
	ret = checkpoint_open_index(s->dir, INDEX_NAME, &s->base);
	if (ret)
		return decline_unreadable(s, ret);
	misfit = find_misfit(s, &s->base->index);
	return misfit ? decline_delta(s, misfit) : 0;
}

void save_drop_base(struct save *s)
{
	embeng_checkpoint_close(s->base);
	s->base = NULL;
}

void save_forget_marks(struct save *s)
{
	for (size_t t = 0; s->marks && t < s->index.model->table_count; t++)
		free(s->marks[t]);
	free(s->marks);
	s->marks = NULL;
}

static int make_marks(struct save *s)
{
	const struct embeng_model *m = s->index.model;
	bool made;

	save_forget_marks(s);
	s->marks = calloc(m->table_count + 1, sizeof(*s->marks));
	made = s->marks;
	for (size_t t = 0; made && t < m->table_count; t++) {
		s->marks[t] = calloc((size_t)m->tables[t].rows / 64 + 1, sizeof(**s->marks));
		made = s->marks[t];
	}
	return made ? 0 : fail(-ENOMEM, "%s: no memory to mark rows", s->source->what);
}

static void mark_rows(struct save *s, size_t table, size_t array,
		      const struct embeng_shard_rows *rows, const char *data)
{
	size_t row = model_row_bytes(&s->index.model->tables[table], array);

	if (!memcmp(data, s->buffer, (size_t)rows->count * row))
		return;
	for (int64_t i = 0; i < rows->count; i++) {
		uint64_t number = (uint64_t)(rows->first + i);

		if (memcmp(data + (size_t)i * row, s->buffer + (size_t)i * row, row))
			s->marks[table][number / 64] |= 1ull << number % 64;
	}
}

/* A base that cannot be read is dropped. */
static int compare_with_base(struct save *s, size_t table, size_t array,
			     const struct embeng_shard_rows *rows)
{
	uint64_t row = model_row_bytes(&s->index.model->tables[table], array);
	const char *data = NULL;
	int ret = save_grow_buffer(s, table, (uint64_t)rows->count * row);

	ret = ret ? ret : s->source->read(s, table, array, rows, &data);
	ret = ret ? ret : save_look_at_rows(s, table, array, rows, data);
	if (ret)
		return ret;
	ret = checkpoint_gather(s->base, (int)table, (int)array, rows, s->buffer);
	if (ret)
		return decline_unreadable(s, ret);
	mark_rows(s, table, array, rows, data);
	return 0;
}

static int compare_array(struct save *s, size_t table, size_t array)
{
	int64_t all = s->index.model->tables[table].rows;
	uint64_t most = 0;
	int ret = 0;

	for (int64_t at = 0; !ret && s->base && at < all; at += (int64_t)most) {
		struct embeng_shard_rows rows = {.first = at, .stride = 1};

		ret = s->source->room(s, table, 1, &most);
		rows.count = (uint64_t)(all - at) < most ? all - at : (int64_t)most;
		ret = ret ? ret : compare_with_base(s, table, array, &rows);
	}
	return ret;
}

static int compare_tables(struct save *s)
{
	const struct embeng_model *m = s->index.model;
	int ret = 0;

	for (size_t t = 0; !ret && s->base && t < m->table_count; t++) {
		for (size_t a = 0; !ret && s->base && a <= m->tables[t].slot_count; a++)
			ret = compare_array(s, t, a);
	}
	return ret;
}

static int64_t count_marks(const struct save *s, size_t table)
{
	size_t words = (size_t)s->index.model->tables[table].rows / 64 + 1;
	int64_t count = 0;

	for (size_t i = 0; i < words; i++)
		count += __builtin_popcountll(s->marks[table][i]);
	return count;
}

/* Behind the entries of the base, which share the list. */
static void add_delta(struct save *s, size_t table, int64_t rows)
{
	size_t entry = s->index.file_count++;
	struct index_file *file = &s->index.files[entry];

	*file = (struct index_file){.table = table,
				    .rows = rows,
				    .stride = 1,
				    .delta = delta_count(&s->base->index) + 1};
	if (entry == s->own)
		shard_name(file->name, s->index.step, s->nonce, 0);
	index_share(&s->index, s->own, entry);
}

static int copy_base_files(struct save *s)
{
	const struct index *base = &s->base->index;
	size_t room = base->file_count + s->index.model->table_count;

	s->index.files = calloc(room, sizeof(*s->index.files));
	if (!s->index.files)
		return fail(-ENOMEM, "%s: no memory for a list of %zu files", s->source->what,
			    room);
	memcpy(s->index.files, base->files, base->file_count * sizeof(*base->files));
	s->index.file_count = s->own = base->file_count;
	s->index.base_count = base->base_count;
	s->index.chunk_bytes = base->chunk_bytes;
	s->index.bytes = s->before = base->bytes;
	return 0;
}

/* A delta has at least one row, so that there is a file with its name. */
static int list_delta(struct save *s)
{
	int ret = copy_base_files(s);

	for (size_t t = 0; !ret && t < s->index.model->table_count; t++) {
		int64_t rows = count_marks(s, t);

		if (rows)
			add_delta(s, t, rows);
	}
	if (!ret && s->index.file_count == s->own) {
		s->marks[0][0] = 1;
		add_delta(s, 0, 1);
	}
	return ret ? ret : save_plan_shard(s, s->own);
}

/* Whether all deltas are larger than what they stand on. */
static bool outgrows_base(const struct save *s)
{
	uint64_t base = 0;

	for (size_t i = 0; i < s->index.base_count; i = next_home(&s->index, i))
		base += s->index.files[i].bytes;
	return s->index.bytes - base > base;
}

int save_plan_delta(struct save *s)
{
	int ret = save_begin_finite(s);

	ret = ret ? ret : make_marks(s);
	ret = ret ? ret : compare_tables(s);
	if (ret || !s->base)
		return ret;
	ret = list_delta(s);
	if (!ret && outgrows_base(s)) {
		save_forget_plan(s);
		return decline_delta(s, "the deltas would be larger than the full checkpoint");
	}
	return ret;
}
