// SPDX-License-Identifier: MIT
/* Rows of all tables and slots, from the engine into shards. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "error.h"
#include "file.h"
#include "save.h"

#define SHARD_BYTES (1ull << 30)
/* A reader maps them all, and Linux gives a process 65530 mappings unless told otherwise. */
#define SHARDS_MAX 60000

struct shard {
	struct save *save;
	struct index_file *file;
	char *path;
	int fd;
	uint64_t at; /* bytes written */
};

static int read_step(struct save *s, uint64_t after)
{
	struct embeng *e = s->e;
	struct embeng_cmd cmd = {.opcode = EMBENG_OP_STATE_READ,
				 .after = after,
				 .desc = region_part(&e->staging, 0, sizeof(uint64_t))};
	int ret;

	pthread_mutex_lock(&e->lock);
	ret = transfer(e, &cmd, "embeng_save", NULL);
	pthread_mutex_unlock(&e->lock);
	if (!ret)
		memcpy(&s->index.step, e->staging.data, sizeof(s->index.step));
	return ret;
}

static uint64_t rows_of_shard(const struct save *s, const struct table *t)
{
	uint64_t most = s->options.shard_bytes ? s->options.shard_bytes : SHARD_BYTES;
	uint64_t rows = most / (4 * (uint64_t)t->dim * (1 + t->slot_count));

	return !rows ? 1 : rows > (uint64_t)t->rows ? (uint64_t)t->rows : rows;
}

/* The header of a shard; sets where its tensors stand. */
static int make_header(struct save *s, struct index_file *file, char **header, size_t *bytes)
{
	const struct table *t = &s->e->model->tables[file->table];
	char names[ARRAYS_MAX][TENSOR_NAME_SIZE], first[24], rows[24];
	struct safetensor tensors[ARRAYS_MAX];
	size_t arrays[ARRAYS_MAX];
	size_t count = shard_tensors(s->e->model, file, names, tensors, arrays);
	const char *const metadata[][2] = {
		{"format", "embeng"}, {"first_row", first}, {"table_rows", rows}};
	int ret;

	snprintf(first, sizeof(first), "%" PRId64, file->first);
	snprintf(rows, sizeof(rows), "%" PRId64, t->rows);
	ret = safetensors_header(tensors, count, metadata, 3, header, bytes);
	for (size_t i = 0; !ret && i < count; i++)
		file->at[arrays[i]] = tensors[i].offset;
	return ret;
}

/* Where everything will stand, so that the bytes are known before the first is written. */
static int plan_shard(struct save *s, struct index_file *file)
{
	const struct table *t = &s->e->model->tables[file->table];
	uint64_t data = 4 * (uint64_t)file->rows * (uint64_t)t->dim * (1 + t->slot_count);
	size_t header_bytes;
	char *header;
	int ret = make_header(s, file, &header, &header_bytes);

	if (ret)
		return ret;
	free(header);
	file->bytes = header_bytes + data;
	file->first_chunk = s->index.chunk_count;
	s->index.chunk_count += chunks_of(file->bytes);
	s->index.bytes += file->bytes;
	return 0;
}

static int count_shards(const struct save *s, uint64_t *count)
{
	const struct embeng_model *m = s->e->model;

	*count = 0;
	for (size_t i = 0; i < m->table_count; i++) {
		uint64_t rows = rows_of_shard(s, &m->tables[i]);

		*count += ((uint64_t)m->tables[i].rows - 1) / rows + 1;
		if (*count > SHARDS_MAX)
			return fail(-ERANGE,
				    "embeng_save: shard_bytes %" PRIu64 " makes more than %d files "
				    "with table %s; give more", s->options.shard_bytes, SHARDS_MAX,
				    m->tables[i].name);
	}
	return 0;
}

static int plan_table(struct save *s, size_t table)
{
	const struct table *t = &s->e->model->tables[table];
	uint64_t most = rows_of_shard(s, t);
	int ret = 0;

	for (uint64_t first = 0; !ret && first < (uint64_t)t->rows; first += most) {
		struct index_file *file = &s->index.files[s->index.file_count];
		uint64_t left = (uint64_t)t->rows - first;

		file->table = table;
		file->first = (int64_t)first;
		file->rows = (int64_t)(left < most ? left : most);
		shard_name(file->name, s->index.step, s->nonce, s->index.file_count);
		ret = plan_shard(s, file);
		s->index.file_count++;
	}
	return ret;
}

static int plan(struct save *s)
{
	uint64_t files;
	int ret = count_shards(s, &files);

	if (ret)
		return ret;
	s->index.files = calloc(files + 1, sizeof(*s->index.files));
	if (!s->index.files)
		return fail(-ENOMEM, "embeng_save: no memory for a list of %" PRIu64 " files",
			    files);
	for (size_t i = 0; !ret && i < s->e->model->table_count; i++)
		ret = plan_table(s, i);
	if (ret)
		return ret;
	s->index.crcs = calloc(s->index.chunk_count + 1, sizeof(*s->index.crcs));
	return s->index.crcs ? 0 : fail(-ENOMEM, "embeng_save: no memory for the checksums");
}

static int tell(const struct save *s)
{
	const struct embeng_progress p = {
		.what = "save", .done = s->done, .total = s->index.bytes};

	if (s->options.progress && s->options.progress(s->options.progress_arg, &p))
		return fail(-ECANCELED, "embeng_save: canceled after %" PRIu64 " of %" PRIu64
					" bytes; %s is as it was", p.done, p.total, s->dir);
	return 0;
}

static int write_bytes(struct shard *shard, const char *data, uint64_t bytes)
{
	uint32_t *crcs = shard->save->index.crcs + shard->file->first_chunk;
	int ret = file_write(shard->fd, shard->path, data, bytes);

	if (ret)
		return ret;
	shard->save->done += bytes;
	while (bytes) {
		uint64_t chunk = shard->at / CHUNK_BYTES;
		uint64_t n = CHUNK_BYTES - shard->at % CHUNK_BYTES;

		n = n < bytes ? n : bytes;
		crcs[chunk] = crc32c(crcs[chunk], data, n);
		shard->at += n;
		data += n;
		bytes -= n;
	}
	return tell(shard->save);
}

/* One tensor: the shard's rows of the parameters or of a slot. */
static int write_array(struct shard *shard, size_t array, uint64_t after)
{
	const struct index_file *file = shard->file;
	struct embeng *e = shard->save->e;
	struct rows_chunk chunk = {.what = "embeng_save",
				   .op = EMBENG_OP_ROWS_READ,
				   .table = (int)file->table,
				   .slot = (int)array,
				   .after = after};
	uint64_t row = 4 * (uint64_t)e->model->tables[file->table].dim, most;
	int ret = rows_chunk_room(e, chunk.table, &most);

	for (uint64_t at = 0; !ret && at < (uint64_t)file->rows; at += most) {
		uint64_t left = (uint64_t)file->rows - at;

		chunk.first = (uint64_t)file->first + at;
		chunk.count = left < most ? left : most;
		ret = rows_chunk_run(e, &chunk);
		ret = ret ? ret : write_bytes(shard, rows_chunk_data(e), chunk.count * row);
	}
	return ret;
}

static int write_header(struct shard *shard)
{
	size_t bytes;
	char *header;
	int ret = make_header(shard->save, shard->file, &header, &bytes);

	if (ret)
		return ret;
	ret = write_bytes(shard, header, bytes);
	free(header);
	return ret;
}

/* In the order in which the tensors stand in the file. */
static int write_arrays(struct shard *shard, uint64_t after)
{
	char names[ARRAYS_MAX][TENSOR_NAME_SIZE];
	struct safetensor tensors[ARRAYS_MAX];
	size_t arrays[ARRAYS_MAX];
	size_t count = shard_tensors(shard->save->e->model, shard->file, names, tensors, arrays);
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++)
		ret = write_array(shard, arrays[i], after);
	return ret;
}

static int write_open(struct shard *shard, uint64_t after)
{
	int ret;

	shard->fd = file_open(shard->path, O_WRONLY | O_CREAT | O_EXCL);
	if (shard->fd < 0)
		return shard->fd;
	shard->save->begun++;
	ret = write_header(shard);
	ret = ret ? ret : write_arrays(shard, after);
	ret = ret ? ret : file_sync(shard->fd, shard->path);
	file_ops->close(shard->fd);
	return ret;
}

static int write_shard(struct save *s, struct index_file *file, uint64_t after)
{
	struct shard shard = {.save = s, .file = file, .path = file_path(s->dir, file->name)};
	int ret = shard.path ? write_open(&shard, after) : -ENOMEM;

	free(shard.path);
	return ret;
}

int save_rows(struct embeng *e, void *arg, uint64_t after)
{
	struct save *s = arg;
	int ret = read_step(s, after);

	(void)e;
	ret = ret ? ret : plan(s);
	ret = ret ? ret : tell(s);
	for (size_t i = 0; !ret && i < s->index.file_count; i++)
		ret = write_shard(s, &s->index.files[i], after);
	return ret;
}
