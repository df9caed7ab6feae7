/* SPDX-License-Identifier: MIT */
/* index.json of a checkpoint: what it says, read and written. embeng-checkpoint(5). */
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
#define PROGRAM_STATE_MAX (64u << 20)

#define CHUNK_BYTES (4u << 20)
#define SHARD_NAME_SIZE 80 /* of a shard's name, with its zero byte */
#define TENSOR_NAME_SIZE 128
#define ARRAYS_MAX (1 + EMBENG_SLOTS_MAX) /* parameters and slots */

/* Rows of one table and of all its slots. */
struct index_file {
	char name[SHARD_NAME_SIZE];
	uint64_t bytes;
	size_t table;
	int64_t first, rows, stride; /* first, first + stride, ... */
	uint64_t at[ARRAYS_MAX]; /* of parameters and slots, from the start of the file */
	uint64_t first_chunk;	 /* of its checksums in &index.crcs */
};

struct index {
	uint64_t step, model_hash;
	struct embeng_model *model;
	char *program_state; /* or NULL */
	struct index_file *files;
	size_t file_count;
	uint32_t *crcs;
	uint64_t chunk_count;
	uint64_t bytes; /* of all files */
};

static inline uint64_t chunks_of(uint64_t bytes)
{
	return bytes / CHUNK_BYTES + (bytes % CHUNK_BYTES != 0);
}

/*
 * index_parse() - read the text of an index
 * @text: [length] and a zero byte
 * @path: for sentences
 * @out: index_free() it, also when it is zeroed
 *
 * Return: 0, -EBADMSG, -ENOTSUP (a newer schema or what it requires), -ENOMEM.
 */
int index_parse(const char *text, size_t length, const char *path, struct index *out);
void index_free(struct index *index);

/* The text that index_parse() reads, malloc'd; -EINVAL for a name that is not UTF-8. */
int index_write(const struct index *index, char **text, size_t *length);

/* 0 when @text is an index of any version: what a save may replace. Else -EBADMSG, -ENOMEM. */
int index_recognize(const char *text, size_t length, const char *path);

/* index_files.c: "files" of the index, both ways; read sets their chunks too. */
int index_read_files(const struct json *o, const struct place *at, struct index *index);
void index_write_files(struct json_writer *w, const struct index *index);
/* "chunks_sha256": of the checksums' digits, file by file. 64 digits and a zero byte. */
void index_digest(const struct index *index, char *digits);

/* index_engine.c: "engine", both ways. */
int index_read_engine(const struct json *document, const struct place *at,
		      struct embeng_model *model);
void index_write_engine(struct json_writer *w, const struct embeng_engine_config *engine);

/* index_model.c: "engine", "tables" and "features", both ways. */
int index_read_model(const struct json *o, const struct place *at, struct embeng_model **out);
void index_write_model(struct json_writer *w, const struct embeng_model *model);

/* index_quantization.c: "quantization" of a table, both ways; absent: none, *out stays. */
int index_read_quantization(const struct json *table, const struct place *at,
			    struct embeng_quantization *out);
void index_write_quantization(struct json_writer *w, const struct embeng_quantization *q);

/* "TABLE/parameters" or "TABLE/SLOT" */
void tensor_name(const struct embeng_model *model, size_t table, size_t array, char *name);

/*
 * shard_tensors() - all tensors of a shard as its header must have them
 * @names: [ARRAYS_MAX] memory for their names
 * @tensors: [ARRAYS_MAX] out, in the order in which they lie in the file: by name
 * @arrays: [ARRAYS_MAX] out, which array each is: 0 parameters, 1 + k slot k
 *
 * Return: how many.
 */
size_t shard_tensors(const struct embeng_model *model, const struct index_file *file,
		     char names[][TENSOR_NAME_SIZE], struct safetensor *tensors, size_t *arrays);

/* names.c: embeng-STEP-NONCE-NUMBER.safetensors, embeng-NONCE.index.tmp */
void shard_name(char name[SHARD_NAME_SIZE], uint64_t step, uint64_t nonce, uint64_t number);
void index_temporary_name(char name[SHARD_NAME_SIZE], uint64_t nonce);
bool is_shard_name(const char *name);
bool is_temporary_name(const char *name);

#endif
