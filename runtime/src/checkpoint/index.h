/* SPDX-License-Identifier: MIT */
/* Reading and writing index.json of a checkpoint; embeng-checkpoint(5) describes it. */
#ifndef EMBENG_CHECKPOINT_INDEX_H
#define EMBENG_CHECKPOINT_INDEX_H

#include "base/json_strict.h"
#include "device/wire.h"
#include "model/model.h"
#include "safetensors.h"
#include "shard.h"

#define INDEX_NAME "index.json"
#define INDEX_SCHEMA_FAMILY "embeng.checkpoint.index/"
#define INDEX_SCHEMA INDEX_SCHEMA_FAMILY "1"
#define INDEX_BYTES_MAX (1ull << 30)
#define KEEP_MAX 1000u /* checkpoints of a folder, the newest included */
#define PROGRAM_STATE_MAX (64u << 20)

#define CHUNK_BYTES (4u << 10) /* size in new checkpoints */
#define CHUNK_BYTES_LEAST (4u << 10)
#define CHUNK_BYTES_MOST (4u << 20)
#define SHARD_NAME_SIZE 80 /* bytes of a shard's name with its zero byte */
#define TENSOR_NAME_SIZE 128
#define ARRAYS_MAX (2 + EMBENG_SLOTS_MAX) /* parameters, slots, and a delta's row numbers */
#define DELTAS_MAX 64u			  /* deltas behind a base */
#define CHUNK_TABLE ARRAYS_MAX		  /* the array of a shard's chunk table */
#define SHA256_DIGITS 64

/*
 * A shard may end in its chunk table: a checksum for each chunk before it, and then one for each chunk of
 * these. The index has the checksum of the latter, and the SHA-256 of the former.
 *
 * Rows of one table and of all its slots, and the shard that they are in. Several tables may share a
 * shard: the first of them in the list is its home. Name, bytes and checksums of all are the home's.
 *
 * The entries of a delta stand behind those of all rows, delta by delta. They hold single rows, which
 * replace those of the same numbers in what stands before them. A delta is one shard.
 */
struct index_file {
	char name[SHARD_NAME_SIZE];
	size_t home; /* index of the shard's first entry, which is this one unless it shares */
	size_t next; /* index of the shard's entry behind this one, or 0 */
	size_t last; /* index of the shard's last entry; only a home has it */
	uint64_t bytes;
	size_t table;
	int64_t first, rows, stride; /* first, first + stride, ... */
	uint32_t delta;		     /* 0: part of the base; else number in the chain, from 1 on */
	uint64_t at[ARRAYS_MAX];     /* offsets of parameters, slots and row numbers in the file */
	uint64_t table_at; /* offset of the chunk table; 0: the checksums are in the index */
	uint32_t table_crc;
	char table_sha[SHA256_DIGITS + 1];
	uint64_t first_chunk; /* without a table: index of the first checksum in &index.crcs */
};

/* A note of a table: whether all values of its rows and slots are finite. */
enum index_finite { INDEX_FINITE_UNKNOWN, INDEX_FINITE, INDEX_NOT_FINITE };

struct index {
	uint64_t step, model_hash;
	struct embeng_model *model;
	char *program_state;		  /* or NULL */
	uint64_t *frozen_steps;		  /* [tables], or NULL: no table was frozen */
	enum index_finite *finite;	  /* [tables], or NULL: unknown */
	char (*earlier)[SHARD_NAME_SIZE]; /* indices of earlier checkpoints, the newest first */
	size_t earlier_count;
	struct index_file *files;
	size_t file_count;
	size_t base_count; /* entries of @files that are part of the base */
	uint32_t *crcs;
	uint64_t chunk_bytes; /* a power of two */
	uint64_t crc_count;
	uint64_t chunk_count; /* chunks in all files; the chunk tables have none */
	uint64_t bytes;	      /* sum over all files */
};

static inline bool is_home(const struct index *index, size_t file)
{
	return index->files[file].home == file;
}

/* The home of the shard behind @file's, or @file_count. */
static inline size_t next_home(const struct index *index, size_t file)
{
	do
		file++;
	while (file < index->file_count && !is_home(index, file));
	return file;
}

/* Number of deltas behind the base. */
static inline uint32_t delta_count(const struct index *index)
{
	return index->file_count ? index->files[index->file_count - 1].delta : 0;
}

/* Number of tensors of an entry. The last one of a delta's are the row numbers. */
static inline size_t entry_arrays(const struct index *index, const struct index_file *file)
{
	return 1 + index->model->tables[file->table].slot_count + (file->delta ? 1 : 0);
}

static inline bool is_row_numbers(const struct index *index, const struct index_file *file,
				  size_t array)
{
	return array > index->model->tables[file->table].slot_count;
}

static inline uint64_t chunks_of(const struct index *index, uint64_t bytes)
{
	return bytes / index->chunk_bytes + (bytes % index->chunk_bytes != 0);
}

static inline uint64_t file_chunks(const struct index *index, const struct index_file *file)
{
	return chunks_of(index, file->table_at ? file->table_at : file->bytes);
}

/* Chunks of the chunk table's first part. */
static inline uint64_t table_chunks(const struct index *index, const struct index_file *file)
{
	return file->table_at ? chunks_of(index, 4 * file_chunks(index, file)) : 0;
}

/* Number of checksums in the chunk table. */
static inline uint64_t table_sums(const struct index *index, const struct index_file *file)
{
	return file->table_at ? file_chunks(index, file) + table_chunks(index, file) : 0;
}

/* Parts of a shard that are checked each by itself: chunks, those of its chunk table, and the end of that. */
static inline uint64_t shard_notes(const struct index *index, const struct index_file *file)
{
	return file_chunks(index, file) + table_chunks(index, file) + 1;
}

/*
 * index_parse() - read the text of an index
 * @text: @length bytes and a zero byte
 * @path: name of the file, for sentences
 * @out: filled in; the caller calls index_free() on it, also after a failure
 *
 * Return: 0, -EBADMSG, -ENOTSUP (a newer schema, or a feature that this library lacks), -ENOMEM.
 */
int index_parse(const char *text, size_t length, const char *path, struct index *out);
void index_free(struct index *index);

/* Writes the text that index_parse() reads, malloc'd; -EINVAL for a name that is not UTF-8. */
int index_write(const struct index *index, char **text, size_t *length);

/* Return: 0 when @text is an index of any version, which a save may replace; -EBADMSG, -ENOMEM. */
int index_recognize(const char *text, size_t length, const char *path);

/* index_files.c: read and write "files" of the index. Reading also sets the files' chunks. */
int index_read_files(const struct json *o, const struct place *at, struct index *index);
void index_write_files(struct json_writer *w, const struct index *index);
/* "chunks_sha256": SHA-256 over the digits of all checksums, file by file, as 64 digits. */
void index_digest(const struct index *index, char *digits);

/* index_table.c: read and write "chunk_table" of a shard; whether any shard has one. */
int index_read_table(const struct json *o, const struct place *at, const struct index *index,
		     struct index_file *file);
void index_write_table(struct json_writer *w, const struct index_file *file);
bool index_has_table(const struct index *index);

/*
 * index_delta.c: reads the table and number of rows of an entry of a delta, whose shard is known; the
 * entry before it is the last one that was read.
 */
int index_read_delta(const struct json *o, const struct place *at, const struct index *index,
		     struct index_file *file);
void index_write_delta(struct json_writer *w, const struct index_file *file);
/* Bytes of one tensor of an entry; false when no file can hold it. */
bool index_tensor_bytes(const struct index *index, const struct index_file *file, size_t array,
			uint64_t *bytes);

/* index_frozen.c: read and write "frozen_steps"; the list with @steps, or zeros. */
int index_make_frozen(struct index *index, const uint64_t *steps);
int index_read_frozen(const struct json *o, const struct place *at, struct index *index);
void index_write_frozen(struct json_writer *w, const struct index *index);

/* index_engine.c: read and write "engine". */
int index_read_engine(const struct json *document, const struct place *at,
		      struct embeng_model *model);
void index_write_engine(struct json_writer *w, const struct embeng_engine_config *engine);

/* index_model.c: read and write "engine", "tables" and "features". */
int index_read_model(const struct json *o, const struct place *at, struct embeng_model **out);
void index_write_model(struct json_writer *w, const struct index *index);

/*
 * index_earlier.c: add to, read and write "earlier", and list the kept indices in a folder whose
 * index does not say it, by step.
 */
int index_add_earlier(struct index *index, const char *name);
int index_read_earlier(const struct json *o, const struct place *at, struct index *index);
void index_write_earlier(struct json_writer *w, const struct index *index);
int index_list_kept(const char *dir, struct index *index);

/* index_finite.c: make, read and write "finite" of the tables. */
int index_make_finite(struct index *index, const char *what);
int index_read_finite(const struct json *o, const struct place *at, struct index *index);
void index_write_finite(struct json_writer *w, const struct index *index, size_t table);

/* index_quantization.c: read and write "quantization" of a table. If it is absent, *out stays. */
int index_read_quantization(const struct json *table, const struct place *at,
			    struct embeng_quantization *out);
void index_write_quantization(struct json_writer *w, const struct embeng_quantization *q);

/* index_part.c: the same of "part", the place of a table in a larger one. */
int index_read_part(const struct json *table, const struct place *at,
		    struct embeng_table_part *out);
void index_write_part(struct json_writer *w, const struct embeng_table_part *p);

/* The name of a tensor: "TABLE/parameters", "TABLE/SLOT", or "TABLE/row_numbers" after the slots. */
void tensor_name(const struct embeng_model *model, size_t table, size_t array, char *name);

/* index_files.c: puts entry @file into the shard of @home; the home itself comes first. */
void index_share(struct index *index, size_t home, size_t file);

/*
 * struct shard_tensors - all tensors of a shard, as its header must have them
 * @tensors: [count] in the order of the file, which is by name
 * @of: [count] whose they are
 *
 * An array is 0 for parameters, 1 + k for slot k, and behind them a delta's row numbers. The last
 * tensor is CHUNK_TABLE where the shard has one.
 */
struct shard_tensors {
	size_t count;
	struct safetensor *tensors;
	struct shard_tensor {
		char name[TENSOR_NAME_SIZE];
		size_t file, array;
	} *of;
};

/* names.c: lists the tensors of the shard of @home. Return: 0, -ENOMEM. */
int shard_tensors_make(const struct index *index, size_t home, struct shard_tensors *out);
void shard_tensors_free(struct shard_tensors *tensors);

/* names.c: the names embeng-STEP-NONCE-NUMBER.safetensors and embeng-NONCE.index.tmp. */
void shard_name(char name[SHARD_NAME_SIZE], uint64_t step, uint64_t nonce, uint64_t number);
void index_temporary_name(char name[SHARD_NAME_SIZE], uint64_t nonce);
bool is_shard_name(const char *name);
bool is_temporary_name(const char *name);

/*
 * The index of an earlier checkpoint is embeng-STEP-NONCE.index.json: its name begins as those of
 * the checkpoint's shards do.
 */
void kept_name(char name[SHARD_NAME_SIZE], const char *shard);
bool is_kept_name(const char *name);
/* The step in the name of such an index or of a shard. */
uint64_t step_of_name(const char *name);
bool is_shard_of_kept(const char *shard, const char *kept);

#endif
