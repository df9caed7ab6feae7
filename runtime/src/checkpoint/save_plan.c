// SPDX-License-Identifier: MIT
/*
 * Plans which files a save will write and how large they are, so that the bytes are known before
 * the first is written.
 *
 * The plan goes into the struct index of the save. Called with the lock of the folder held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "save.h"

#define SHARD_BYTES (1ull << 30)
/* A host's rows of a table of up to this size share a shard with those of other tables. */
#define SMALL_BYTES (8ull << 20)
/* A reader maps them all, and Linux gives a process 65530 mappings unless told otherwise. */
#define SHARDS_MAX 60000

/* The shard that takes small tables of each host, as far as it is filled. */
struct sharing {
	size_t home;
	uint64_t bytes; /* its rows' bytes; 0: there is no such shard yet */
};

static uint64_t most_bytes(const struct save *s)
{
	return s->options.shard_bytes ? s->options.shard_bytes : SHARD_BYTES;
}

static uint64_t rows_of_shard(const struct save *s, const struct table *t)
{
	uint64_t rows = most_bytes(s) / model_whole_row_bytes(t);

	return !rows ? 1 : rows > (uint64_t)t->rows ? (uint64_t)t->rows : rows;
}

/* For people; which rows a table's tensors hold is only said where the shard has one table. */
static int make_header(const struct save *s, size_t home, const struct shard_tensors *all,
		       char **header, size_t *bytes)
{
	const struct index_file *file = &s->index.files[home];
	char first[24], rows[24], stride[24];
	const char *const metadata[][2] = {{"format", "embeng"},
					   {"first_row", first},
					   {"table_rows", rows},
					   {"row_stride", stride}};

	snprintf(first, sizeof(first), "%" PRId64, file->first);
	snprintf(rows, sizeof(rows), "%" PRId64, s->index.model->tables[file->table].rows);
	snprintf(stride, sizeof(stride), "%" PRId64, file->stride);
	return safetensors_header(all->tensors, all->count, metadata,
				  file->next || file->delta ? 1
				  : file->stride > 1	    ? 4
							    : 3,
				  header, bytes);
}

int save_header(struct save *s, size_t home, char **header, size_t *bytes)
{
	struct shard_tensors all;
	int ret = shard_tensors_make(&s->index, home, &all);

	if (ret)
		return ret;
	ret = make_header(s, home, &all, header, bytes);
	for (size_t i = 0; !ret && i < all.count; i++) {
		if (all.of[i].array != CHUNK_TABLE)
			s->index.files[all.of[i].file].at[all.of[i].array] = all.tensors[i].offset;
	}
	shard_tensors_free(&all);
	return ret;
}

static uint64_t entry_bytes(const struct save *s, const struct index_file *file)
{
	uint64_t numbers = file->delta ? (uint64_t)file->rows * sizeof(int64_t) : 0;

	return numbers +
	       (uint64_t)file->rows * model_whole_row_bytes(&s->index.model->tables[file->table]);
}

int save_plan_shard(struct save *s, size_t home)
{
	struct index_file *first = &s->index.files[home];
	uint64_t rows = entry_bytes(s, first), before;
	size_t header_bytes;
	char *header;
	int ret;

	for (size_t file = first->next; file; file = s->index.files[file].next)
		rows += entry_bytes(s, &s->index.files[file]);
	/* The header tells the size of the chunk table, which covers the header: a few rounds settle it. */
	first->table_at = rows;
	do {
		before = first->table_at;
		ret = save_header(s, home, &header, &header_bytes);
		if (ret)
			return ret;
		free(header);
		first->table_at = header_bytes + rows;
	} while (first->table_at != before);
	first->bytes = first->table_at + sizeof(uint32_t) * table_sums(&s->index, first);
	s->index.bytes += first->bytes;
	return 0;
}

static struct embeng_shard_rows rows_of_host(const struct save *s, const struct table *t,
					     uint32_t host)
{
	const struct embeng_engine_config *engine = &s->index.model->engine;

	return shard_rows(engine->sharding, engine->hosts, host, t->rows);
}

static int count_shards(const struct save *s, uint64_t *count)
{
	const struct embeng_model *m = s->index.model;

	*count = 0;
	for (size_t i = 0; i < m->table_count; i++) {
		const struct table *t = &m->tables[i];
		uint64_t rows = rows_of_shard(s, t);
		uint32_t hosts = shard_hosts(m->engine.hosts, t->rows);

		for (uint32_t h = 0; h < hosts && *count <= SHARDS_MAX; h++)
			*count += ((uint64_t)rows_of_host(s, t, h).count - 1) / rows + 1;
		if (*count > SHARDS_MAX)
			return fail(-ERANGE,
				    "%s: shard_bytes %" PRIu64 " over %" PRIu32 " hosts makes more "
				    "than %d files with table %s; give more bytes or fewer hosts",
				    s->source->what, s->options.shard_bytes, m->engine.hosts,
				    SHARDS_MAX, t->name);
	}
	return 0;
}

/* The shard of a new entry: one of its own, or the one that small tables of its host share. */
static void choose_shard(struct save *s, size_t entry, struct sharing *sharing, bool whole)
{
	struct index_file *file = &s->index.files[entry];
	uint64_t bytes = entry_bytes(s, file);
	bool shares = sharing && whole && bytes <= SMALL_BYTES && bytes <= most_bytes(s);

	if (shares && sharing->bytes && sharing->bytes + bytes <= most_bytes(s)) {
		index_share(&s->index, sharing->home, entry);
		sharing->bytes += bytes;
		return;
	}
	shard_name(file->name, s->index.step, s->nonce, s->homes++);
	index_share(&s->index, entry, entry);
	if (shares)
		*sharing = (struct sharing){.home = entry, .bytes = bytes};
}

static void plan_host(struct save *s, size_t table, struct embeng_shard_rows rows,
		      struct sharing *sharing)
{
	int64_t most = (int64_t)rows_of_shard(s, &s->index.model->tables[table]);

	for (int64_t at = 0; at < rows.count; at += most) {
		size_t entry = s->index.file_count++;
		struct index_file *file = &s->index.files[entry];

		file->table = table;
		file->first = rows.first + at * rows.stride;
		file->stride = rows.stride;
		file->rows = rows.count - at < most ? rows.count - at : most;
		choose_shard(s, entry, sharing, rows.count <= most);
	}
}

/* One of each host of the engine, and of each owner of tables; NULL: the table shares no shard. */
static struct sharing *sharing_of(const struct save *s, size_t table, uint32_t host,
				  struct sharing *sharing)
{
	uint32_t owner;

	if (!s->owners)
		return &sharing[host];
	owner = s->owners[table];
	if (owner == SAVE_SHARES_NOTHING)
		return NULL;
	owner = owner == SAVE_SHARES_BY_HOST ? host : owner;
	return &sharing[(size_t)host * s->owner_count + owner];
}

static void plan_table_shards(struct save *s, size_t table, struct sharing *sharing)
{
	const struct table *t = &s->index.model->tables[table];
	uint32_t hosts = shard_hosts(s->index.model->engine.hosts, t->rows);

	for (uint32_t h = 0; h < hosts; h++)
		plan_host(s, table, rows_of_host(s, t, h), sharing_of(s, table, h, sharing));
}

static int plan_shards(struct save *s, uint64_t entries)
{
	/* A host that has rows has an entry. */
	const size_t owners = s->owners ? s->owner_count : 1;
	struct sharing *sharing = calloc((entries + 1) * owners, sizeof(*sharing));
	int ret = 0;

	s->index.files = calloc(entries + 1, sizeof(*s->index.files));
	s->homes = 0;
	if (!s->index.files || !sharing) {
		free(sharing);
		return fail(-ENOMEM, "%s: no memory for a list of %" PRIu64 " files",
			    s->source->what, entries);
	}
	for (size_t i = 0; i < s->index.model->table_count; i++)
		plan_table_shards(s, i, sharing);
	s->index.base_count = s->index.file_count;
	free(sharing);
	for (size_t i = 0; !ret && i < s->index.file_count; i = next_home(&s->index, i))
		ret = save_plan_shard(s, i);
	return ret;
}

int save_begin_finite(struct save *s)
{
	int ret = index_make_finite(&s->index, s->source->what);

	for (size_t i = 0; !ret && i < s->index.model->table_count; i++)
		s->index.finite[i] = INDEX_FINITE;
	return ret;
}

int save_plan(struct save *s)
{
	uint64_t entries;
	int ret = count_shards(s, &entries);

	s->index.chunk_bytes = CHUNK_BYTES;
	ret = ret ? ret : save_begin_finite(s);
	return ret ? ret : plan_shards(s, entries);
}

void save_forget_plan(struct save *s)
{
	free(s->index.files);
	s->index.files = NULL;
	s->index.file_count = 0;
	s->index.base_count = 0;
	s->own = 0;
	s->before = 0;
	s->index.bytes = 0;
	s->done = 0;
}
