// SPDX-License-Identifier: MIT
/*
 * Reads and writes the file of one table in a profile's folder (embeng-profile(5)). A file is
 * replaced as a whole by a rename, so that a reader sees the old one or the new one.
 *
 * The caller of profile_write() holds the lock of the folder. Counts that are read belong to the
 * caller.
 */
#define _GNU_SOURCE /* asprintf */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../engine/hash/sha256.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_strict.h"
#include "profile.h"

#define SCHEMA "embeng.profile/1"
#define FILE_MOST (1u << 20)
#define COUNT_MOST INT64_MAX

static const char *sharding_name(const struct profile_key *key)
{
	return key->engine->sharding == EMBENG_SHARDING_MOD ? "mod" : "div";
}

void profile_name(const struct profile_key *key, char name[PROFILE_NAME_SIZE])
{
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;
	char text[128];
	uint64_t first = 0;

	/* A name cannot hold the zero byte that ends it here. */
	sha256_init(&sha);
	sha256_update(&sha, key->table->name, strlen(key->table->name) + 1);
	snprintf(text, sizeof(text), "%" PRId64 " %" PRIu64 " %" PRIu32 " %s", key->table->rows,
		 key->num_features, key->engine->hosts, sharding_name(key));
	sha256_update(&sha, text, strlen(text));
	sha256_final(&sha, digest);
	for (int i = 0; i < 8; i++)
		first = first << 8 | digest[i];
	snprintf(name, PROFILE_NAME_SIZE, "embeng-profile-%016" PRIx64 ".json", first);
}

/* -- reading ------------------------------------------------------------- */

static int check_key(const struct json *o, const struct place *at, const struct profile_key *key)
{
	const char *schema, *table, *sharding;
	uint64_t rows, features, hosts;
	int ret = json_text(o, at, "schema", &schema);

	if (!ret && strcmp(schema, SCHEMA))
		return json_bad(at, "\"schema\" is not \"" SCHEMA "\"");
	ret = ret ? ret : json_text(o, at, "table", &table);
	ret = ret ? ret : json_number(o, at, "rows", 1, INT64_MAX, &rows);
	ret = ret ? ret : json_number(o, at, "num_features", 0, INT64_MAX, &features);
	ret = ret ? ret : json_number(o, at, "hosts", 1, INT32_MAX, &hosts);
	ret = ret ? ret : json_text(o, at, "sharding", &sharding);
	if (!ret && (strcmp(table, key->table->name) || rows != (uint64_t)key->table->rows ||
		     features != key->num_features || hosts != key->engine->hosts ||
		     strcmp(sharding, sharding_name(key))))
		ret = json_bad(at, "is of another table than its name says");
	return ret;
}

static int read_row(const struct json *pair, const struct place *at, int64_t rows,
		    struct hot_row *out)
{
	uint64_t row, count;

	if (!json_is(pair, JSON_ARRAY) || json_length(pair) != 2 ||
	    !json_is_number(json_at(pair, 0), (uint64_t)rows - 1, &row) ||
	    !json_is_number(json_at(pair, 1), COUNT_MOST, &count))
		return json_bad(at, "is not a row of the table and its count");
	*out = (struct hot_row){(int64_t)row, count};
	return 0;
}

static int read_hot_rows(const struct json *o, const struct place *at, int64_t rows,
			 struct hot_counts *out)
{
	const struct json *hot;
	int ret = json_member(o, at, "hot", JSON_ARRAY, &hot);
	size_t count = ret ? 0 : json_length(hot);

	if (!ret && count > EMBENG_PROFILE_HOT)
		ret = json_bad(at, "\"hot\" has %zu rows, at most %d are allowed", count,
			       EMBENG_PROFILE_HOT);
	if (ret)
		return ret;
	out->rows = calloc(count + 1, sizeof(*out->rows));
	if (!out->rows)
		return fail(-ENOMEM, "%s: no memory for its rows", at->file);
	for (size_t i = 0; !ret && i < count; i++) {
		const struct place place = {.file = at->file, .list = "hot", .index = i};

		ret = read_row(json_at(hot, i), &place, rows, &out->rows[i]);
	}
	out->row_count = ret ? 0 : profile_join(out->rows, count);
	return ret;
}

static int read_text(const char *text, size_t length, const struct place *at,
		     const struct profile_key *key, struct hot_counts *out)
{
	const struct json *o;
	int ret = json_parse_strict(text, length, at, &o);

	if (ret)
		return ret;
	ret = check_key(o, at, key);
	ret = ret ? ret : json_number(o, at, "batches", 0, COUNT_MOST, &out->batches);
	ret = ret ? ret : json_number(o, at, "ids", 0, COUNT_MOST, &out->ids);
	ret = ret ? ret : read_hot_rows(o, at, key->table->rows, out);
	json_free(o);
	return ret;
}

int profile_read(const char *path, const struct profile_key *key, struct hot_counts *out)
{
	const struct place at = {.file = path};
	struct hot_counts made = {0};
	size_t length;
	char *text;
	int ret = file_read_whole(path, FILE_MOST, &text, &length);

	if (ret == -ENOENT) {
		*out = made;
		return 0;
	}
	if (ret)
		return ret;
	ret = read_text(text, length, &at, key, &made);
	free(text);
	if (ret)
		profile_free(&made);
	else
		*out = made;
	return ret;
}

/* -- writing ------------------------------------------------------------- */

static void write_counts(struct json_writer *w, const struct profile_key *key,
			 const struct hot_counts *c)
{
	json_write_object(w, NULL);
	json_write_text(w, "schema", SCHEMA);
	json_write_text(w, "table", key->table->name);
	json_write_number(w, "rows", (uint64_t)key->table->rows);
	json_write_number(w, "num_features", key->num_features);
	json_write_number(w, "hosts", key->engine->hosts);
	json_write_text(w, "sharding", sharding_name(key));
	json_write_number(w, "batches", c->batches);
	json_write_number(w, "ids", c->ids);
	json_write_array(w, "hot");
	for (size_t i = 0; i < c->row_count; i++) {
		json_write_array(w, NULL);
		json_write_number(w, NULL, (uint64_t)c->rows[i].row);
		json_write_number(w, NULL, c->rows[i].count);
		json_write_close(w);
	}
	json_write_close(w);
	json_write_close(w);
}

int profile_write(const char *dir, const char *name, const struct profile_key *key,
		  const struct hot_counts *counts)
{
	struct json_writer w;
	char *path, *text;
	size_t length;
	int ret;

	json_write_begin(&w, JSON_SPACED);
	write_counts(&w, key, counts);
	ret = json_finish(&w, "a table of the profile", &text, &length);
	if (ret)
		return ret;
	path = file_path(dir, name);
	ret = path ? file_replace(path, text, length) : -ENOMEM;
	free(path);
	free(text);
	return ret;
}
