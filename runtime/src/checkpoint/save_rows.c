// SPDX-License-Identifier: MIT
/*
 * Writes the rows of all tables and slots into the shards of a save, and computes the checksums of
 * their chunks on the way.
 *
 * An open file lives as long as its shard is written. Called with the lock of the folder held.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../engine/hash/crc32c.h"
#include "../../../engine/hash/sha256.h"
#include "base/error.h"
#include "base/file.h"
#include "save.h"
#include "stream.h"

struct shard {
	struct save *save;
	size_t home;
	char *path;
	int fd;
	uint64_t at;	/* bytes written */
	uint32_t *sums; /* the chunk table; of the chunks that are written already */
};

static int tell_saved(const struct save *s)
{
	const struct embeng_progress p = {
		.what = s->source->progress, .done = s->done, .total = s->index.bytes - s->before};

	if (s->options.progress && s->options.progress(s->options.progress_arg, &p))
		return fail(-ECANCELED,
			    "%s: canceled after %" PRIu64 " of %" PRIu64 " bytes; %s %s",
			    s->source->what, p.done, p.total, s->dir,
			    s->stream ? "ends within a checkpoint" : "is as it was");
	return 0;
}

/* Into the file, or into the stream. */
static int put_shard_bytes(struct shard *shard, const void *data, uint64_t bytes)
{
	return shard->save->stream ? stream_put(shard->save->stream, data, bytes)
				   : file_write(shard->fd, shard->path, data, bytes);
}

static int write_shard_bytes(struct shard *shard, const char *data, uint64_t bytes)
{
	int ret = put_shard_bytes(shard, data, bytes);

	if (ret)
		return ret;
	shard->save->done += bytes;
	while (bytes) {
		uint64_t chunk = shard->at / CHUNK_BYTES;
		uint64_t n = CHUNK_BYTES - shard->at % CHUNK_BYTES;

		n = n < bytes ? n : bytes;
		shard->sums[chunk] = crc32c(shard->sums[chunk], data, n);
		shard->at += n;
		data += n;
		bytes -= n;
	}
	return tell_saved(shard->save);
}

/* One tensor of a delta; its rows were looked at when they were compared. */
static int write_delta_array(struct shard *shard, const struct index_file *file, size_t array)
{
	uint64_t at = 0, bytes = 1;
	const char *data = NULL;
	int ret = 0;

	while (!ret && bytes) {
		ret = save_read_delta(shard->save, file, array, &at, &data, &bytes);
		ret = ret ? ret : write_shard_bytes(shard, data, bytes);
	}
	return ret;
}

/* One tensor: the rows of an entry, of the parameters or of a slot. */
static int write_array(struct shard *shard, size_t entry, size_t array)
{
	struct save *s = shard->save;
	const struct index_file *file = &s->index.files[entry];
	uint64_t row = model_row_bytes(&s->index.model->tables[file->table], array), most = 0;
	int ret = 0;

	if (file->delta)
		return write_delta_array(shard, file, array);
	for (uint64_t at = 0; !ret && at < (uint64_t)file->rows; at += most) {
		uint64_t left = (uint64_t)file->rows - at;
		struct embeng_shard_rows rows = {.first = file->first + (int64_t)at * file->stride,
						 .stride = file->stride};
		const char *data = NULL;

		ret = s->source->room(s, file->table, (uint64_t)file->stride, &most);
		rows.count = (int64_t)(left < most ? left : most);
		ret = ret ? ret : s->source->read(s, file->table, array, &rows, &data);
		ret = ret ? ret : save_look_at_rows(s, file->table, array, &rows, data);
		ret = ret ? ret : write_shard_bytes(shard, data, (uint64_t)rows.count * row);
	}
	return ret;
}

static int write_shard_header(struct shard *shard)
{
	size_t bytes;
	char *header;
	int ret = save_header(shard->save, shard->home, &header, &bytes);

	if (ret)
		return ret;
	ret = write_shard_bytes(shard, header, bytes);
	free(header);
	return ret;
}

/* Adds the checksums of the first part, whose last chunk may be shorter. */
static void sum_table(struct shard *shard, struct index_file *file)
{
	const struct index *index = &shard->save->index;
	uint64_t chunks = file_chunks(index, file), left = sizeof(uint32_t) * chunks;
	const char *from = (const char *)shard->sums;
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;

	sha256_init(&sha);
	sha256_update(&sha, from, left);
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(file->table_sha + 2 * i, 3, "%02x", digest[i]);
	for (uint64_t k = 0; k < table_chunks(index, file); k++) {
		uint64_t n = left < CHUNK_BYTES ? left : CHUNK_BYTES;

		shard->sums[chunks + k] = crc32c(0, from, n);
		from += n;
		left -= n;
	}
	file->table_crc = crc32c(0, shard->sums + chunks,
				 sizeof(uint32_t) * table_chunks(index, file));
}

/* The end of the shard; it is in no chunk itself. */
static int write_chunk_table(struct shard *shard)
{
	struct index_file *file = &shard->save->index.files[shard->home];
	uint64_t bytes = file->bytes - file->table_at;
	int ret;

	sum_table(shard, file);
	ret = put_shard_bytes(shard, shard->sums, bytes);
	if (ret)
		return ret;
	shard->save->done += bytes;
	return tell_saved(shard->save);
}

/* In the order in which the tensors stand in the file. */
static int write_arrays(struct shard *shard)
{
	struct shard_tensors all;
	int ret = shard_tensors_make(&shard->save->index, shard->home, &all);

	if (ret)
		return ret;
	for (size_t i = 0; !ret && i < all.count; i++)
		ret = all.of[i].array == CHUNK_TABLE
			      ? write_chunk_table(shard)
			      : write_array(shard, all.of[i].file, all.of[i].array);
	shard_tensors_free(&all);
	return ret;
}

static int write_shard_content(struct shard *shard)
{
	int ret = write_shard_header(shard);

	return ret ? ret : write_arrays(shard);
}

static int write_shard_member(struct shard *shard)
{
	const struct index_file *file = &shard->save->index.files[shard->home];
	int ret = stream_member(shard->save->stream, file->name, file->bytes);

	return ret ? ret : write_shard_content(shard);
}

static int write_open(struct shard *shard)
{
	int ret;

	shard->fd = file_open(shard->path, O_WRONLY | O_CREAT | O_EXCL);
	if (shard->fd < 0)
		return shard->fd;
	shard->save->begun++;
	ret = write_shard_content(shard);
	/* Updates wait behind a gate: the sync comes after it. */
	if (!shard->save->held)
		ret = ret ? ret : file_sync(shard->fd, shard->path);
	file_ops->close(shard->fd);
	return ret;
}

int save_shard(struct save *s, size_t home)
{
	const struct index_file *file = &s->index.files[home];
	struct shard shard = {.save = s,
			      .home = home,
			      .path = file_path(s->dir, file->name),
			      .sums = calloc(table_sums(&s->index, file), sizeof(uint32_t))};
	int ret = shard.path ? 0 : -ENOMEM;

	if (!ret && !shard.sums)
		ret = fail(-ENOMEM, "%s: no memory for the checksums", s->source->what);
	if (!ret)
		ret = s->stream ? write_shard_member(&shard) : write_open(&shard);
	free(shard.sums);
	free(shard.path);
	return ret;
}

int save_rows(struct save *s)
{
	int ret = s->base ? save_plan_delta(s) : 0;

	if (!ret && !s->own)
		ret = save_plan(s);
	ret = ret ? ret : tell_saved(s);
	/* Once, even if the rows are written again. */
	if (!ret && s->stream && !s->stream->at)
		ret = stream_begin(s->stream, s->index.bytes);
	for (size_t i = s->own, next; !ret && i < s->index.file_count; i = next) {
		ret = save_shard(s, i);
		/* The tables of later shards do not come before their homes. */
		next = next_home(&s->index, i);
		if (!ret && s->source->passed && next < s->index.file_count)
			s->source->passed(s, s->index.files[next].table);
	}
	return ret;
}

static int sync_again(const char *path)
{
	int fd = file_open(path, O_RDONLY), ret;

	if (fd < 0)
		return fd;
	ret = file_sync(fd, path);
	file_ops->close(fd);
	return ret;
}

int save_sync_rows(struct save *s)
{
	int ret = 0;

	for (size_t i = s->own; !ret && i < s->index.file_count; i = next_home(&s->index, i)) {
		char *path = file_path(s->dir, s->index.files[i].name);

		ret = path ? sync_again(path) : -ENOMEM;
		free(path);
	}
	return ret;
}

/* The sentence of a failure stays the last one. */
void save_forget_rows(struct save *s)
{
	for (size_t i = s->own; s->begun; i = next_home(&s->index, i), s->begun--) {
		char *path = file_path(s->dir, s->index.files[i].name);

		if (path)
			file_ops->remove(path);
		free(path);
	}
	/* A stream keeps the shards that it has, so that others need other names. */
	if (s->stream)
		s->nonce++;
	save_forget_plan(s);
}
