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
/* A reader maps them all, and Linux gives a process 65530 mappings unless told otherwise. */
#define SHARDS_MAX 60000

static uint64_t rows_of_shard(const struct save *s, const struct table *t)
{
	uint64_t most = s->options.shard_bytes ? s->options.shard_bytes : SHARD_BYTES;
	uint64_t rows = most / (4 * (uint64_t)t->dim * (1 + t->slot_count));

	return !rows ? 1 : rows > (uint64_t)t->rows ? (uint64_t)t->rows : rows;
}

int save_header(const struct save *s, struct index_file *file, char **header, size_t *bytes)
{
	const struct table *t = &s->index.model->tables[file->table];
	char names[ARRAYS_MAX][TENSOR_NAME_SIZE], first[24], rows[24], stride[24];
	struct safetensor tensors[ARRAYS_MAX];
	size_t arrays[ARRAYS_MAX];
	size_t count = shard_tensors(s->index.model, file, names, tensors, arrays);
	const char *const metadata[][2] = {{"format", "embeng"},
					   {"first_row", first},
					   {"table_rows", rows},
					   {"row_stride", stride}};
	int ret;

	snprintf(first, sizeof(first), "%" PRId64, file->first);
	snprintf(rows, sizeof(rows), "%" PRId64, t->rows);
	snprintf(stride, sizeof(stride), "%" PRId64, file->stride);
	ret = safetensors_header(tensors, count, metadata, file->stride > 1 ? 4 : 3, header, bytes);
	for (size_t i = 0; !ret && i < count; i++)
		file->at[arrays[i]] = tensors[i].offset;
	return ret;
}

static int plan_shard(struct save *s, struct index_file *file)
{
	const struct table *t = &s->index.model->tables[file->table];
	uint64_t data = 4 * (uint64_t)file->rows * (uint64_t)t->dim * (1 + t->slot_count);
	size_t header_bytes;
	char *header;
	int ret = save_header(s, file, &header, &header_bytes);

	if (ret)
		return ret;
	free(header);
	file->bytes = header_bytes + data;
	file->first_chunk = s->index.chunk_count;
	s->index.chunk_count += chunks_of(file->bytes);
	s->index.bytes += file->bytes;
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

static int plan_host(struct save *s, size_t table, struct embeng_shard_rows rows)
{
	int64_t most = (int64_t)rows_of_shard(s, &s->index.model->tables[table]);
	int ret = 0;

	for (int64_t at = 0; !ret && at < rows.count; at += most) {
		struct index_file *file = &s->index.files[s->index.file_count];

		file->table = table;
		file->first = rows.first + at * rows.stride;
		file->stride = rows.stride;
		file->rows = rows.count - at < most ? rows.count - at : most;
		shard_name(file->name, s->index.step, s->nonce, s->index.file_count);
		ret = plan_shard(s, file);
		s->index.file_count++;
	}
	return ret;
}

static int plan_table_shards(struct save *s, size_t table)
{
	const struct table *t = &s->index.model->tables[table];
	uint32_t hosts = shard_hosts(s->index.model->engine.hosts, t->rows);
	int ret = 0;

	for (uint32_t h = 0; !ret && h < hosts; h++)
		ret = plan_host(s, table, rows_of_host(s, t, h));
	return ret;
}

int save_plan(struct save *s)
{
	uint64_t files;
	int ret = count_shards(s, &files);

	if (ret)
		return ret;
	ret = index_make_finite(&s->index, s->source->what);
	if (ret)
		return ret;
	for (size_t i = 0; i < s->index.model->table_count; i++)
		s->index.finite[i] = INDEX_FINITE;
	s->index.files = calloc(files + 1, sizeof(*s->index.files));
	if (!s->index.files)
		return fail(-ENOMEM, "%s: no memory for a list of %" PRIu64 " files",
			    s->source->what, files);
	for (size_t i = 0; !ret && i < s->index.model->table_count; i++)
		ret = plan_table_shards(s, i);
	if (ret)
		return ret;
	s->index.crcs = calloc(s->index.chunk_count + 1, sizeof(*s->index.crcs));
	return s->index.crcs ? 0
			     : fail(-ENOMEM, "%s: no memory for the checksums", s->source->what);
}
