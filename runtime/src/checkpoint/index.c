// SPDX-License-Identifier: MIT
/*
 * The index of a checkpoint as a whole: its schema, its own checksum, and its members that are not
 * lists. Reading and writing are both here, so that an index that one writes is read by the other.
 * The lists of files and the model have files of their own.
 *
 * A struct index owns its model and lists until index_free(). No lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/crc32c.h"
#include "base/error.h"
#include "index.h"

/* The end of every index: its own checksum, of all bytes up to the digits. */
#define CRC_KEY "index_crc32c"
#define CRC_ZERO "00000000"
#define CRC_DIGITS (sizeof(CRC_ZERO) - 1)
#define SHA_DIGITS 64
#define CRC_END "\"\n}\n"
#define CRC_TAIL (CRC_DIGITS + sizeof(CRC_END) - 1)

static bool is_family(const struct json *o)
{
	const char *schema = json_string(json_get(o, "schema"));

	return schema && !strncmp(schema, INDEX_SCHEMA_FAMILY, sizeof(INDEX_SCHEMA_FAMILY) - 1);
}

int index_recognize(const char *text, size_t length, const char *path)
{
	const struct place at = {.file = path};
	const struct json *o = NULL;
	int ret = json_parse_strict(text, length, &at, &o);

	if (!ret && !is_family(o))
		ret = json_bad(&at, "\"schema\" does not begin with \"" INDEX_SCHEMA_FAMILY "\"");
	json_free(o);
	return ret;
}

/*
 * The rows of a file are not consecutive ones of the table. A reader must know how they are spread.
 */
#define REQUIRES_MOD "mod"
/* A file with rows of several tables, which is described in full only once. */
#define REQUIRES_SHARED "shared"
/* Files behind those of all rows replace some of the rows. */
#define REQUIRES_DELTA "delta"
/* Checksums of chunks that stand in the shards. */
#define REQUIRES_TABLES "chunk_tables"

/* The value as JSON, in which nothing can hide. */
static int refuse_requirement(const struct json *value, const struct place *at)
{
	struct json_writer w;
	size_t length;
	char *text;
	int ret;

	json_write_begin(&w, JSON_COMPACT);
	json_write_value(&w, NULL, value);
	ret = json_finish(&w, at->file, &text, &length);
	if (ret)
		return ret;
	ret = fail(-ENOTSUP, "%s: requires %.64s, which this library does not know; update it",
		   at->file, text);
	free(text);
	return ret;
}

static int check_requires(const struct json *o, const struct place *at)
{
	const struct json *requires;
	int ret = json_member(o, at, "requires", JSON_ARRAY, &requires);

	for (size_t i = 0; !ret && i < json_length(requires); i++) {
		const struct json *name = json_at(requires, i);

		if (!json_says(name, REQUIRES_MOD) && !json_says(name, REQUIRES_SHARED) &&
		    !json_says(name, REQUIRES_DELTA) && !json_says(name, REQUIRES_TABLES))
			ret = refuse_requirement(name, at);
	}
	return ret;
}

static bool has_shared(const struct index *index)
{
	for (size_t i = 0; i < index->file_count; i++) {
		if (!is_home(index, i))
			return true;
	}
	return false;
}

static void write_requires(struct json_writer *w, const struct index *index)
{
	const struct embeng_engine_config *engine = &index->model->engine;

	json_write_array(w, "requires");
	if (engine->hosts > 1 && engine->sharding == EMBENG_SHARDING_MOD)
		json_write_text(w, NULL, REQUIRES_MOD);
	if (has_shared(index))
		json_write_text(w, NULL, REQUIRES_SHARED);
	if (delta_count(index))
		json_write_text(w, NULL, REQUIRES_DELTA);
	if (index_has_table(index))
		json_write_text(w, NULL, REQUIRES_TABLES);
	json_write_close(w);
}

static int check_schema(const struct json *o, const struct place *at)
{
	if (!is_family(o))
		return json_bad(at, "\"schema\" is not \"" INDEX_SCHEMA "\"");
	if (!json_says(json_get(o, "schema"), INDEX_SCHEMA))
		return fail(-ENOTSUP,
			    "%s: its schema is %.64s, this library reads " INDEX_SCHEMA
			    "; update the library",
			    at->file, json_string(json_get(o, "schema")));
	return check_requires(o, at);
}

static int check_own_crc(const struct json *o, const char *text, size_t length,
			 const struct place *at)
{
	const char *end = text + length - CRC_TAIL;
	uint64_t want, digits;
	int ret = json_hex(o, at, CRC_KEY, CRC_DIGITS, &want);

	if (ret)
		return ret;
	if (strcmp(end + CRC_DIGITS, CRC_END) || !hex_number(end, CRC_DIGITS, &digits) ||
	    digits != want)
		return json_bad(at,
				"\"index_crc32c\" is not its last member, on a line of its own");
	if (crc32c(0, text, length - CRC_TAIL) != want)
		return json_bad(at, "its checksum does not match: the index is corrupt");
	return 0;
}

static int read_header(const struct json *o, const struct place *at, struct index *index)
{
	const char *state;
	int ret = json_hex(o, at, "model_hash", 16, &index->model_hash);

	ret = ret ? ret : json_number(o, at, "step", 0, INT64_MAX, &index->step);
	ret = ret ? ret
		  : json_number(o, at, "chunk_bytes", CHUNK_BYTES_LEAST, CHUNK_BYTES_MOST,
				&index->chunk_bytes);
	if (!ret && index->chunk_bytes & (index->chunk_bytes - 1))
		ret = json_bad(at, "\"chunk_bytes\" is %" PRIu64 ", which is no power of two",
			       index->chunk_bytes);
	if (ret || !json_get(o, "program_state"))
		return ret;
	ret = json_text(o, at, "program_state", &state);
	if (!ret && strlen(state) > PROGRAM_STATE_MAX)
		ret = json_bad(at, "\"program_state\" has %zu bytes, at most %u are allowed",
			       strlen(state), PROGRAM_STATE_MAX);
	if (ret)
		return ret;
	index->program_state = strdup(state);
	return index->program_state ? 0 : fail(-ENOMEM, "%s: no memory for it", at->file);
}

static int check_digest(const struct json *o, const struct place *at, const struct index *index)
{
	char digest[SHA_DIGITS + 1];
	const char *want;
	int ret = json_text(o, at, "chunks_sha256", &want);

	if (ret)
		return ret;
	index_digest(index, digest);
	return strcmp(want, digest) ? json_bad(at, "\"chunks_sha256\" is not that of the chunks")
				    : 0;
}

static int read_index_document(const struct json *o, const struct place *at, struct index *index)
{
	int ret = read_header(o, at, index);

	ret = ret ? ret : index_read_model(o, at, &index->model);
	ret = ret ? ret : index_read_frozen(o, at, index);
	ret = ret ? ret : index_read_finite(o, at, index);
	ret = ret ? ret : index_read_files(o, at, index);
	ret = ret ? ret : index_read_earlier(o, at, index);
	return ret ? ret : check_digest(o, at, index);
}

int index_parse(const char *text, size_t length, const char *path, struct index *out)
{
	const struct place at = {.file = path};
	struct index made = {0};
	const struct json *o;
	int ret = json_parse_strict(text, length, &at, &o);

	if (ret)
		return ret;
	ret = check_schema(o, &at);
	ret = ret ? ret : check_own_crc(o, text, length, &at);
	ret = ret ? ret : read_index_document(o, &at, &made);
	json_free(o);
	if (ret)
		index_free(&made);
	else
		*out = made;
	return ret;
}

void index_free(struct index *index)
{
	embeng_model_free(index->model);
	free(index->program_state);
	free(index->frozen_steps);
	free(index->earlier);
	free(index->finite);
	free(index->files);
	free(index->crcs);
	*index = (struct index){0};
}

/* The checksum is the last member: zero digits first, what stands before them decides. */
static void write_index_document(struct json_writer *w, const struct index *index)
{
	char hash[17], digest[SHA_DIGITS + 1];

	snprintf(hash, sizeof(hash), "%016" PRIx64, index->model_hash);
	index_digest(index, digest);
	json_write_object(w, NULL);
	json_write_text(w, "schema", INDEX_SCHEMA);
	write_requires(w, index);
	json_write_text(w, "model_hash", hash);
	json_write_number(w, "step", index->step);
	if (index->program_state)
		json_write_text(w, "program_state", index->program_state);
	index_write_model(w, index);
	index_write_frozen(w, index);
	json_write_number(w, "chunk_bytes", index->chunk_bytes);
	index_write_files(w, index);
	json_write_text(w, "chunks_sha256", digest);
	index_write_earlier(w, index);
	json_write_text(w, CRC_KEY, CRC_ZERO);
	json_write_close(w);
}

/* An index that cannot be read back must not be committed. */
static int read_back(const char *text, size_t length)
{
	struct index again = {0};
	int ret = index_parse(text, length, "the new index", &again);

	index_free(&again);
	return ret == -EBADMSG ? -EINVAL : ret;
}

int index_write(const struct index *index, char **text, size_t *length)
{
	struct json_writer w;
	char *made;
	size_t bytes;
	int ret;

	json_write_begin(&w, JSON_LINES);
	write_index_document(&w, index);
	ret = json_finish(&w, "the new index", &made, &bytes);
	if (ret)
		return ret;
	snprintf(made + bytes - CRC_TAIL, CRC_TAIL + 1, "%08x" CRC_END,
		 crc32c(0, made, bytes - CRC_TAIL));
	ret = read_back(made, bytes);
	if (ret) {
		free(made);
		return ret;
	}
	*text = made;
	*length = bytes;
	return 0;
}
