// SPDX-License-Identifier: MIT
/*
 * The index of a checkpoint, its checksums put right, and headers of safetensors. For an index
 * that is taken the shards are made: then all reads as it was written, until a byte changes.
 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>

#include "../../engine/hash/crc32c.h"
#include "../../engine/hash/sha256.h"
#include "../../runtime/src/checkpoint/index.h"
#include "../../runtime/src/checkpoint/open.h"
#include "../unit/support/failing_alloc.h"
#include "embeng.h"
#include "fuzz.h"
#include "memory_files.h"

#define ROWS_MOST 4096
#define TENSORS 2u
#define LIMIT ((size_t)16 << 20) /* bytes; an index may name any number of rows */

static int said(int result)
{
	struct embeng_error error = {.size = sizeof(error)};

	if (!result)
		return 0;
	embeng_last_error(&error);
	fuzz_check(error.code == result && strlen(error.text) > 8, "%d, but the error is %d, '%s'",
		   result, error.code, error.text);
	return result;
}

/* The digest of the checksums that the files name, right or not. */
static void put_digest(struct json_object *root)
{
	struct json_object *files = json_object_object_get(root, "files");
	unsigned char digest[SHA256_BYTES];
	char digits[2 * SHA256_BYTES + 1];
	struct sha256 sha;

	sha256_init(&sha);
	for (size_t i = 0;
	     json_object_is_type(files, json_type_array) && i < json_object_array_length(files);
	     i++) {
		struct json_object *file = json_object_array_get_idx(files, i);
		struct json_object *table = json_object_object_get(file, "chunk_table");
		struct json_object *chunks = table ? json_object_object_get(table, "sha256")
						   : json_object_object_get(file, "chunks");

		if (json_object_is_type(chunks, json_type_string))
			sha256_update(&sha, json_object_get_string(chunks),
				      (uint64_t)json_object_get_string_len(chunks));
	}
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(digits + 2 * i, 3, "%02x", digest[i]);
	json_object_object_add(root, "chunks_sha256", json_object_new_string(digits));
}

/* The document's text with its own checksum as last member. */
static char *sealed(struct json_object *root, uint32_t sum, size_t *length)
{
	const char *body;
	char *text;
	size_t bytes;

	if (sum % 8)
		put_digest(root);
	json_object_object_del(root, "index_crc32c");
	body = json_object_to_json_string_length(root, JSON_C_TO_STRING_PLAIN, &bytes);
	text = fuzz_memory(bytes + 64);
	bytes -= 1; /* its closing brace */
	bytes = (size_t)sprintf(text, "%.*s,\n  \"index_crc32c\": \"", (int)bytes, body);
	*length = bytes + (size_t)sprintf(text + bytes, "%08x\"\n}\n", crc32c(0, text, bytes));
	return text;
}

static bool is_small(const struct index *index)
{
	int64_t floats = 0;

	if (index->file_count > MEMORY_FILES - 2)
		return false;
	for (size_t i = 0; i < index->model->table_count; i++) {
		const struct table *t = &index->model->tables[i];

		if (t->rows > ROWS_MOST || t->dim > ROWS_MOST)
			return false;
		floats += t->rows * t->dim;
	}
	return floats <= ROWS_MOST;
}

static size_t tensor_size(const struct safetensor *t)
{
	return (size_t)(t->rows * t->dim) *
	       (t->type == SAFETENSOR_I64 ? sizeof(int64_t) : sizeof(float));
}

static bool numbers_are_bad;

/* The row numbers of a delta: the first rows of its table, the last one of which may be none. */
static void number_rows(uint8_t *to, const struct safetensor *t)
{
	const int64_t none = -1;

	for (int64_t row = 0; t->type == SAFETENSOR_I64 && row < (int64_t)t->rows; row++)
		memcpy(to + (size_t)row * sizeof(row),
		       numbers_are_bad && row + 1 == (int64_t)t->rows ? &none : &row, sizeof(row));
}

/* The table of a shard of one chunk, which has one checksum, and one of that. */
static void make_table(struct index_file *file, uint8_t *whole)
{
	uint32_t sums[2] = {crc32c(0, whole, file->table_at)};
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;

	sums[1] = crc32c(0, &sums[0], sizeof(sums[0]));
	memcpy(whole + file->table_at, sums, sizeof(sums));
	file->table_crc = crc32c(0, &sums[1], sizeof(sums[1]));
	sha256_init(&sha);
	sha256_update(&sha, &sums[0], sizeof(sums[0]));
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(file->table_sha + 2 * i, 3, "%02x", digest[i]);
}

/* The header of a shard, and where its tensors begin and end. */
static char *make_header(struct index *index, size_t home, struct shard_tensors *all, size_t *bytes,
			 uint64_t *end)
{
	static const char *const metadata[][2] = {{"written_by", "fuzz"}};
	char *header;

	fuzz_check(!said(shard_tensors_make(index, home, all)), "tensors");
	fuzz_check(!said(safetensors_header(all->tensors, all->count, metadata, 1, &header, bytes)),
		   "header");
	*end = *bytes;
	for (size_t i = 0; i < all->count; i++) {
		if (all->of[i].array == CHUNK_TABLE)
			continue;
		*end += tensor_size(&all->tensors[i]);
		index->files[all->of[i].file].at[all->of[i].array] = all->tensors[i].offset;
	}
	return header;
}

/* The shard of @home and of the entries that share it; @number is that of its chunk. */
static void make_shard(struct index *index, size_t home, size_t number)
{
	struct index_file *file = &index->files[home];
	struct shard_tensors all;
	uint64_t end;
	size_t bytes;
	char *header;
	uint8_t *whole;

	/* One chunk, so that the size of the table does not depend on the header's. */
	file->table_at = file->table_at ? 8 : 0;
	header = make_header(index, home, &all, &bytes, &end);
	file->table_at = file->table_at ? end : 0;
	file->bytes = end + (file->table_at ? 2 * sizeof(uint32_t) : 0);
	whole = fuzz_memory(file->bytes);
	memcpy(whole, header, bytes);
	for (size_t i = bytes; i < end; i++)
		whole[i] = (uint8_t)(i * 7 + number);
	for (size_t i = 0; i < all.count; i++)
		number_rows(whole + all.tensors[i].offset, &all.tensors[i]);
	file->first_chunk = number;
	index->crcs[number] = crc32c(0, whole, file->bytes);
	if (file->table_at)
		make_table(file, whole);
	memory_file_put(file->name, whole, file->bytes);
	free(whole);
	free(header);
	shard_tensors_free(&all);
}

static size_t count_homes(const struct index *index)
{
	size_t count = 0;

	for (size_t i = 0; i < index->file_count; i = next_home(index, i))
		count++;
	return count;
}

/* Shards of one chunk each, and the index that names them. */
static void make_folder(struct index *index)
{
	size_t length, number = 0;
	char *text;

	free(index->crcs);
	index->chunk_bytes = CHUNK_BYTES_MOST;
	index->crc_count = count_homes(index);
	index->crcs = calloc(index->crc_count + 1, sizeof(*index->crcs));
	for (size_t i = 0; i < index->file_count; i = next_home(index, i))
		make_shard(index, i, number++);
	fuzz_check(!said(index_write(index, &text, &length)), "an index that was read");
	memory_file_put(INDEX_NAME, text, length);
	free(text);
}

static void read_table(const struct embeng_checkpoint *c, int t, const struct table *table)
{
	float *data = fuzz_memory((size_t)(table->rows * table->dim) * sizeof(*data));

	fuzz_check(!said(embeng_checkpoint_read(c, t, NULL, 0, (size_t)table->rows, data)),
		   "table %d", t);
	fuzz_check(said(embeng_checkpoint_read(c, t, NULL, 1, (size_t)table->rows, data)) ==
			   -ERANGE,
		   "table %d", t);
	fuzz_check(said(embeng_checkpoint_read(c, t, "none", 0, 1, data)) == -ENOENT, "table %d",
		   t);
	free(data);
}

/* As a serving finds single rows, and a host its own. */
static void read_deltas(const struct embeng_checkpoint *c, int t, const struct table *table)
{
	const struct embeng_shard shard = {
		.size = sizeof(shard), .sharding = EMBENG_SHARDING_MOD, .hosts = 2};
	size_t half = (size_t)(table->rows + 1) / 2, found = 0, most = 0;
	float *data = fuzz_memory((size_t)(table->rows * table->dim) * sizeof(*data));
	const struct checkpoint_piece *pieces = NULL;
	int64_t place;

	if (checkpoint_pieces(c, t, 0, &pieces) > 0)
		fuzz_check(pieces[0].rows && pieces[0].good, "table %d", t);
	for (int64_t row = 0; row < table->rows; row++)
		found += checkpoint_find_delta(c, t, 0, row, &place) != NULL;
	for (size_t i = 0; i < checkpoint_delta_count(c, t); i++) {
		size_t rows = (size_t)checkpoint_delta_piece(c, t, 0, i)->count;

		most = rows > most ? rows : most;
	}
	fuzz_check(found == most, "table %d: %zu rows in deltas, of %zu", t, found, most);
	fuzz_check(!said(embeng_checkpoint_read_shard(c, t, NULL, &shard, 0, half, data)),
		   "table %d", t);
	free(data);
}

/* An index of an earlier version does not say whether its tables are finite. */
static void read_finite(const struct embeng_checkpoint *c, int tables)
{
	for (int t = 0; t < tables; t++) {
		int finite = embeng_checkpoint_finite(c, t);

		fuzz_check(finite >= 0 || said(finite) == -ENODATA, "table %d: %d", t, finite);
	}
	fuzz_check(said(embeng_checkpoint_finite(c, -1)) == -ENOENT, "a table before the first");
	fuzz_check(said(embeng_checkpoint_finite(c, tables)) == -ENOENT,
		   "a table behind the last one");
}

/* As a save reads the indices that it keeps. */
static void read_by_name(void)
{
	struct embeng_checkpoint *c;

	fuzz_check(!said(checkpoint_open_index(MEMORY_FOLDER, INDEX_NAME, &c)), "a named index");
	embeng_checkpoint_close(c);
	fuzz_check(said(checkpoint_open_index(MEMORY_FOLDER, "none", &c)) == -ENOENT,
		   "an index that is not there");
}

static void read_all(const struct index *index)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c;

	fuzz_check(!said(embeng_checkpoint_open(MEMORY_FOLDER, &c, NULL)), "what was written");
	fuzz_check(!said(embeng_checkpoint_verify(c, NULL, NULL)), "what was written");
	fuzz_check(!said(embeng_checkpoint_info(c, &info)) && info.file_count == count_homes(index),
		   "%zu files", info.file_count);
	for (size_t t = 0; t < index->model->table_count; t++) {
		read_table(c, (int)t, &index->model->tables[t]);
		read_deltas(c, (int)t, &index->model->tables[t]);
	}
	fuzz_check(said(embeng_checkpoint_read(c, (int)index->model->table_count, NULL, 0, 0,
					       NULL)) == -ENOENT,
		   "a table behind the last one");
	read_finite(c, (int)index->model->table_count);
	read_by_name();
	embeng_checkpoint_close(c);
}

static void read_without_memory(uint32_t nth)
{
	struct embeng_checkpoint *c;
	int result;
	bool starved;

	scarce_begin(nth);
	result = embeng_checkpoint_open(MEMORY_FOLDER, &c, NULL);
	starved = scarce_end();
	fuzz_check(!result || (starved && result == -ENOMEM), "%d", result);
	if (!said(result))
		embeng_checkpoint_close(c);
}

/* One byte of one file is another, or the file is shorter, or gone. */
static void damage(uint32_t sum, size_t files)
{
	struct memory_file *file = &memory_files[sum % files];
	size_t at = (sum >> 8) % file->bytes;

	switch (sum >> 30) {
	case 0:
		memory_file_put(file->name, file->data, at);
		break;
	case 1:
		memory_file_remove(file->name);
		break;
	case 2:
		memory_files_break(1 + (sum >> 8) % 8);
		break;
	case 3:
		file->data[at] ^= (uint8_t)(1u << (sum >> 27) % 8);
		break;
	}
}

static int look(struct embeng_checkpoint **c)
{
	int result = said(embeng_checkpoint_open(MEMORY_FOLDER, c, NULL));

	if (!result) {
		result = said(embeng_checkpoint_verify(*c, NULL, NULL));
		embeng_checkpoint_close(*c);
	}
	return result;
}

/* Damage is noticed; a read that fails late may come when all is read. */
static void read_damaged(uint32_t sum, size_t files)
{
	struct embeng_checkpoint *c;
	int result;

	damage(sum, files);
	result = look(&c);
	fuzz_check(result || sum >> 30 == 2, "damage %u, %u of %zu files", sum >> 30,
		   (uint32_t)(sum % files), files);
}

/* Checksums that are right do not make a row of what is none. */
static void read_bad_numbers(struct index *index)
{
	struct embeng_checkpoint *c;

	if (!delta_count(index))
		return;
	numbers_are_bad = true;
	make_folder(index);
	numbers_are_bad = false;
	fuzz_check(said(embeng_checkpoint_open(MEMORY_FOLDER, &c, NULL)) == -EBADMSG,
		   "row numbers that are none");
}

/* Names that are made are names that are known. */
static void try_names(uint32_t sum)
{
	uint64_t step = (uint64_t)sum << (sum & 31);
	char name[SHARD_NAME_SIZE], kept[SHARD_NAME_SIZE];

	shard_name(name, step, ~(uint64_t)sum, sum & 0xffff);
	fuzz_check(is_shard_name(name) && !is_temporary_name(name) && !is_kept_name(name), "%s",
		   name);
	kept_name(kept, name);
	fuzz_check(is_kept_name(kept) && !is_shard_name(kept) && step_of_name(kept) == step &&
			   is_shard_of_kept(name, kept),
		   "%s of %s", kept, name);
	shard_name(name, step, sum, sum & 0xffff);
	fuzz_check(!is_shard_of_kept(name, kept), "%s of %s", kept, name);
	index_temporary_name(name, ~(uint64_t)sum << 7);
	fuzz_check(is_temporary_name(name) && !is_shard_name(name), "%s", name);
}

static void try_index(struct json_object *root, uint32_t sum)
{
	size_t length;
	char *text = sealed(root, sum, &length);
	struct index index = {0};

	scarce_begin(0);
	scarce_limit(LIMIT);
	if (!said(index_parse(text, length, INDEX_NAME, &index)) && is_small(&index)) {
		scarce_end();
		make_folder(&index);
		read_all(&index);
		read_without_memory(1 + sum % 32);
		read_damaged(sum, count_homes(&index) + 1);
		memory_files_break(0);
		read_bad_numbers(&index);
	}
	scarce_end();
	index_free(&index);
	free(text);
}

/* As the header of a shard of two tensors [4, 2]. */
static void try_header(const uint8_t *data, size_t size)
{
	uint64_t bytes, start = size, at = sizeof(start) + size;
	struct safetensor tensors[TENSORS] = {
		{.name = "t/accumulators", .rows = 4, .dim = 2, .offset = at},
		{.name = "t/parameters", .rows = 4, .dim = 2, .offset = at + 32}};
	char *text = fuzz_memory(size);
	int result = safetensors_header_bytes(&start, at + 64, "shard", &bytes);

	memcpy(text, data, size);
	fuzz_check(!said(result) && bytes == size, "%zu bytes", size);
	said(safetensors_check(text, size, at + 64, "shard", tensors, TENSORS));
	if (size >= sizeof(start)) {
		memcpy(&start, data, sizeof(start));
		said(safetensors_header_bytes(&start, size, "shard", &bytes));
	}
	free(text);
}

static void try_bytes(const uint8_t *data, size_t size)
{
	struct index index = {0};
	char *text = fuzz_memory(size + 1);

	memcpy(text, data, size);
	if (!said(index_parse(text, size, INDEX_NAME, &index)))
		index_free(&index);
	said(index_recognize(text, size, INDEX_NAME));
	is_temporary_name(text);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_tokener *tokener = json_tokener_new_ex(32);
	struct json_object *root = json_tokener_parse_ex(tokener, (const char *)data, (int)size);

	json_tokener_free(tokener);
	memory_files_begin();
	try_names(crc32c(0, data, size));
	try_bytes(data, size);
	if (json_object_is_type(root, json_type_object) &&
	    json_object_object_get_ex(root, "schema", NULL))
		try_index(root, crc32c(0, data, size));
	else
		try_header(data, size);
	json_object_put(root);
	memory_files_end();
	return 0;
}
