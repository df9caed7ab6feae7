// SPDX-License-Identifier: MIT
/*
 * The list of shards in a checkpoint's index: which rows each shard holds, where its tensors are,
 * and the checksums of its chunks. Reading and writing are side by side, so that they stay alike.
 *
 * The lists belong to the struct index and are freed by index_free(). No lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/sha256.h"
#include "base/error.h"
#include "index.h"

#define CRC_DIGITS 8

/* The next row that no file has had yet: a host's, counted among its own. */
struct cursor {
	size_t table;
	uint32_t host;
	int64_t place;
};

static int read_shard_name(const struct json *o, const struct place *at, struct index_file *file)
{
	const char *name;
	int ret = json_text(o, at, "name", &name);

	if (ret)
		return ret;
	if (!is_shard_name(name) || strlen(name) >= sizeof(file->name))
		return json_bad(at, "\"%.80s\" is not the name of a shard", name);
	strcpy(file->name, name);
	return 0;
}

static struct embeng_shard_rows rows_of(const struct embeng_model *model, const struct cursor *at)
{
	return shard_rows(model->engine.sharding, model->engine.hosts, at->host,
			  model->tables[at->table].rows);
}

static void step_on(const struct embeng_model *model, int64_t rows, struct cursor *next)
{
	next->place += rows;
	if (next->place < rows_of(model, next).count)
		return;
	next->place = 0;
	if (++next->host < shard_hosts(model->engine.hosts, model->tables[next->table].rows))
		return;
	*next = (struct cursor){.table = next->table + 1};
}

static int64_t next_row(const struct embeng_model *model, const struct cursor *next)
{
	struct embeng_shard_rows rows = rows_of(model, next);

	return rows.first + next->place * rows.stride;
}

/* Files stand in the order of tables, hosts and rows, without gaps. */
static int read_shard_rows(const struct json *o, const struct place *at,
			   const struct embeng_model *model, struct cursor *next,
			   struct index_file *file)
{
	uint64_t table, first, rows;
	struct embeng_shard_rows all;
	int ret = json_number(o, at, "table", 0, INT32_MAX, &table);

	ret = ret ? ret : json_number(o, at, "first_row", 0, INT64_MAX, &first);
	ret = ret ? ret : json_number(o, at, "rows", 1, INT64_MAX, &rows);
	if (ret)
		return ret;
	if (next->table >= model->table_count)
		return json_bad(at, "all rows of all tables stand in the files before it");
	if (table != next->table || first != (uint64_t)next_row(model, next))
		return json_bad(at,
				"has table %" PRIu64 " from row %" PRIu64
				", expected is table %zu from row %" PRId64,
				table, first, next->table, next_row(model, next));
	all = rows_of(model, next);
	if (rows > (uint64_t)(all.count - next->place))
		return json_bad(at,
				"has %" PRIu64 " rows from row %" PRIu64 " of table %s, of which "
				"host %" PRIu32 " has %" PRId64,
				rows, first, model->tables[table].name, next->host, all.count);
	file->table = table;
	file->first = (int64_t)first;
	file->rows = (int64_t)rows;
	file->stride = all.stride;
	step_on(model, (int64_t)rows, next);
	return 0;
}

/* Where one tensor of an entry begins. */
static int read_tensor_place(const struct json *tensors, const struct place *at,
			     const struct index *index, struct index_file *file, size_t array)
{
	char name[TENSOR_NAME_SIZE];
	uint64_t bytes;
	int ret;

	if (!index_tensor_bytes(index, file, array, &bytes) || bytes > file->bytes)
		return json_bad(at, "%" PRIu64 " bytes do not hold its rows", file->bytes);
	tensor_name(index->model, file->table, array, name);
	ret = json_number(tensors, at, name, 8, file->bytes - bytes, &file->at[array]);
	if (!ret && file->at[array] % sizeof(float))
		ret = json_bad(at, "\"%s\" is not at a multiple of 4 bytes", name);
	return ret;
}

static int read_tensors(const struct json *o, const struct place *at, const struct index *index,
			struct index_file *file)
{
	size_t count = entry_arrays(index, file);
	const struct json *tensors;
	uint64_t bytes;
	int ret;

	if (!index_tensor_bytes(index, file, 0, &bytes) || bytes > file->bytes)
		return json_bad(at, "%" PRIu64 " bytes do not hold its rows", file->bytes);
	ret = json_member(o, at, "tensors", JSON_OBJECT, &tensors);
	if (!ret && json_length(tensors) != count)
		ret = json_bad(at, "has %zu tensors, its table has %zu", json_length(tensors),
			       count);
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_tensor_place(tensors, at, index, file, i);
	return ret;
}

/* Room for the checksums of one more file. */
static int grow_crcs(struct index *index, const struct place *at, uint64_t chunks)
{
	uint32_t *crcs = reallocarray(index->crcs, index->crc_count + chunks + 1, sizeof(*crcs));

	if (!crcs)
		return fail(-ENOMEM, "%s: no memory for the checksums", at->file);
	index->crcs = crcs;
	return 0;
}

static int read_chunks(const struct json *o, const struct place *at, struct index *index,
		       struct index_file *file)
{
	uint64_t chunks = chunks_of(index, file->bytes), crc;
	const char *text;
	int ret = json_text(o, at, "chunks", &text);

	/* Compared before any memory is taken for them. */
	if (!ret && (strlen(text) % CRC_DIGITS || strlen(text) / CRC_DIGITS != chunks))
		ret = json_bad(at, "\"chunks\" has %zu digits, %" PRIu64 " checksums have %u each",
			       strlen(text), chunks, CRC_DIGITS);
	ret = ret ? ret : grow_crcs(index, at, chunks);
	for (uint64_t i = 0; !ret && i < chunks; i++) {
		if (!hex_number(text + CRC_DIGITS * i, CRC_DIGITS, &crc))
			ret = json_bad(at,
				       "\"chunks\": checksum %" PRIu64
				       " is not hexadecimal digits in lower case",
				       i);
		else
			index->crcs[index->crc_count + i] = (uint32_t)crc;
	}
	if (ret)
		return ret;
	file->first_chunk = index->crc_count;
	index->crc_count += chunks;
	return 0;
}

void index_share(struct index *index, size_t home, size_t file)
{
	struct index_file *first = &index->files[home], *f = &index->files[file];

	f->home = home;
	f->next = 0;
	if (file != home) {
		memcpy(f->name, first->name, sizeof(f->name));
		f->bytes = first->bytes;
		index->files[first->last].next = file;
	}
	first->last = file;
}

/* The file that an entry shares with one before it. */
static int read_home(const struct json *o, const struct place *at, struct index *index)
{
	uint64_t home;
	int ret = json_number(o, at, "shares", 0, INT32_MAX, &home);

	if (ret)
		return ret;
	if (home >= index->file_count || !is_home(index, home))
		return json_bad(at,
				"\"shares\" is %" PRIu64 ", which is no file before it with a name "
				"of its own",
				home);
	index_share(index, home, index->file_count);
	return 0;
}

/* The file of an entry: its own, or that of one before it. */
static int read_own(const struct json *o, const struct place *at, struct index *index,
		    struct index_file *file)
{
	int ret = read_shard_name(o, at, file);

	if (!ret)
		index_share(index, index->file_count, index->file_count);
	return ret ? ret : json_number(o, at, "bytes", 1, INT64_MAX, &file->bytes);
}

static int read_sums(const struct json *o, const struct place *at, struct index *index,
		     struct index_file *file)
{
	int ret = json_get(o, "chunk_table") ? index_read_table(o, at, index, file)
					     : read_chunks(o, at, index, file);

	if (ret)
		return ret;
	index->chunk_count += file_chunks(index, file);
	if (__builtin_add_overflow(index->bytes, file->bytes, &index->bytes))
		return json_bad(at, "the files have more bytes than 64 bits count");
	return 0;
}

/* Deltas stand behind all rows of all tables. */
static int read_entry_rows(const struct json *o, const struct place *at, struct index *index,
			   struct cursor *next, struct index_file *file)
{
	int ret;

	if (json_get(o, "delta") && next->table == index->model->table_count && index->file_count)
		return index_read_delta(o, at, index, file);
	ret = read_shard_rows(o, at, index->model, next, file);
	index->base_count += !ret;
	return ret;
}

static int read_file(const struct json *o, const struct place *at, struct index *index,
		     struct cursor *next)
{
	struct index_file *file = &index->files[index->file_count];
	bool shares;
	int ret;

	if (!json_is(o, JSON_OBJECT))
		return json_bad(at, "is not an object");
	shares = json_get(o, "shares");
	ret = shares ? read_home(o, at, index) : read_own(o, at, index, file);
	ret = ret ? ret : read_entry_rows(o, at, index, next, file);
	ret = ret ? ret : read_tensors(o, at, index, file);
	if (!shares)
		ret = ret ? ret : read_sums(o, at, index, file);
	if (!ret)
		index->file_count++;
	return ret;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_file_names(const struct place *at, const struct index *index)
{
	const char **names = calloc(index->file_count + 1, sizeof(*names));
	int ret = names ? 0 : fail(-ENOMEM, "%s: no memory for the names of files", at->file);
	size_t count = 0;

	for (size_t i = 0; !ret && i < index->file_count; i = next_home(index, i))
		names[count++] = index->files[i].name;
	if (!ret)
		qsort(names, count, sizeof(*names), by_name);
	for (size_t i = 1; !ret && i < count; i++) {
		if (!strcmp(names[i - 1], names[i]))
			ret = json_bad(at, "names the file %s twice", names[i]);
	}
	free(names);
	return ret;
}

int index_read_files(const struct json *o, const struct place *at, struct index *index)
{
	struct cursor next = {0};
	const struct json *files;
	size_t count;
	int ret = json_member(o, at, "files", JSON_ARRAY, &files);

	if (ret)
		return ret;
	count = json_length(files);
	index->files = calloc(count + 1, sizeof(*index->files));
	if (!index->files || count > INT32_MAX)
		return fail(-ENOMEM, "%s: no memory for %zu files", at->file, count);
	for (size_t i = 0; !ret && i < count; i++) {
		const struct place place = {.file = at->file, .list = "files", .index = i};

		ret = read_file(json_at(files, i), &place, index, &next);
	}
	if (!ret && next.table < index->model->table_count)
		ret = json_bad(at, "table %s: no file has row %" PRId64,
			       index->model->tables[next.table].name,
			       next_row(index->model, &next));
	return ret ? ret : check_file_names(at, index);
}

static void digits_of(const struct index *index, const struct index_file *file, uint64_t chunk,
		      char *digits)
{
	uint32_t crc = index->crcs[file->first_chunk + chunk];

	for (unsigned int i = 0; i < CRC_DIGITS; i++)
		digits[i] = "0123456789abcdef"[crc >> (28 - 4 * i) & 15];
	digits[CRC_DIGITS] = '\0';
}

static void digest_file(const struct index *index, const struct index_file *file,
			struct sha256 *sha)
{
	uint64_t chunks = chunks_of(index, file->bytes);
	char digits[CRC_DIGITS * 64 + 1];

	if (file->table_at) {
		sha256_update(sha, file->table_sha, SHA256_DIGITS);
		return;
	}
	for (uint64_t first = 0; first < chunks; first += 64) {
		uint64_t n = chunks - first < 64 ? chunks - first : 64;

		for (uint64_t k = 0; k < n; k++)
			digits_of(index, file, first + k, digits + CRC_DIGITS * k);
		sha256_update(sha, digits, CRC_DIGITS * n);
	}
}

void index_digest(const struct index *index, char *digits)
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;

	sha256_init(&sha);
	for (size_t i = 0; i < index->file_count; i = next_home(index, i))
		digest_file(index, &index->files[i], &sha);
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(digits + 2 * i, 3, "%02x", digest[i]);
}

static void write_chunks(struct json_writer *w, const struct index *index,
			 const struct index_file *file)
{
	uint64_t chunks = chunks_of(index, file->bytes);
	char *text = malloc(CRC_DIGITS * chunks + 1);

	if (!text) {
		json_write_no_memory(w);
		return;
	}
	for (uint64_t i = 0; i < chunks; i++)
		digits_of(index, file, i, text + CRC_DIGITS * i);
	json_write_text(w, "chunks", text);
	free(text);
}

static void write_tensors(struct json_writer *w, const struct index *index,
			  const struct index_file *file)
{
	size_t count = entry_arrays(index, file);
	char name[TENSOR_NAME_SIZE];

	json_write_object(w, "tensors");
	for (size_t i = 0; i < count; i++) {
		tensor_name(index->model, file->table, i, name);
		json_write_number(w, name, file->at[i]);
	}
	json_write_close(w);
}

static void write_shard_rows(struct json_writer *w, const struct index_file *file)
{
	json_write_number(w, "table", file->table);
	json_write_number(w, "first_row", (uint64_t)file->first);
	json_write_number(w, "rows", (uint64_t)file->rows);
}

void index_write_files(struct json_writer *w, const struct index *index)
{
	json_write_array(w, "files");
	for (size_t i = 0; i < index->file_count; i++) {
		const struct index_file *file = &index->files[i];

		json_write_object(w, NULL);
		if (is_home(index, i)) {
			json_write_text(w, "name", file->name);
			json_write_number(w, "bytes", file->bytes);
		} else {
			json_write_number(w, "shares", file->home);
		}
		if (file->delta)
			index_write_delta(w, file);
		else
			write_shard_rows(w, file);
		write_tensors(w, index, file);
		if (file->table_at && is_home(index, i))
			index_write_table(w, file);
		else if (is_home(index, i))
			write_chunks(w, index, file);
		json_write_close(w);
	}
	json_write_close(w);
}
