// SPDX-License-Identifier: MIT
/*
 * "chunk_table" of a shard in a checkpoint's index: where the shard's own table of checksums begins, and the
 * checksums of that table. Reading and writing are side by side, so that they stay alike. The table itself
 * is read by whoever uses a chunk of the shard first (read.c).
 *
 * Only arguments are touched; no lock is needed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "index.h"

static bool is_digest(const char *text)
{
	return strlen(text) == SHA256_DIGITS && strspn(text, "0123456789abcdef") == SHA256_DIGITS;
}

static int read_table_place(const struct json *o, const struct place *at, const struct index *index,
			    struct index_file *file)
{
	int ret = json_number(o, at, "at", 8, file->bytes, &file->table_at);

	if (ret)
		return ret;
	if (file->table_at % sizeof(uint32_t) ||
	    file->bytes - file->table_at != sizeof(uint32_t) * table_sums(index, file))
		return json_bad(at,
				"\"chunk_table\" is at %" PRIu64 " of %" PRIu64
				" bytes, which is no place for %" PRIu64 " checksums",
				file->table_at, file->bytes, table_sums(index, file));
	return 0;
}

int index_read_table(const struct json *o, const struct place *at, const struct index *index,
		     struct index_file *file)
{
	const struct json *table;
	const char *digest;
	uint64_t crc;
	int ret = json_member(o, at, "chunk_table", JSON_OBJECT, &table);

	ret = ret ? ret : read_table_place(table, at, index, file);
	ret = ret ? ret : json_hex(table, at, "crc32c", 8, &crc);
	ret = ret ? ret : json_text(table, at, "sha256", &digest);
	if (ret)
		return ret;
	if (!is_digest(digest))
		return json_bad(at, "\"sha256\" is not %d hexadecimal digits in lower case",
				SHA256_DIGITS);
	file->table_crc = (uint32_t)crc;
	memcpy(file->table_sha, digest, SHA256_DIGITS + 1);
	return 0;
}

void index_write_table(struct json_writer *w, const struct index_file *file)
{
	char crc[9];

	snprintf(crc, sizeof(crc), "%08" PRIx32, file->table_crc);
	json_write_object(w, "chunk_table");
	json_write_number(w, "at", file->table_at);
	json_write_text(w, "crc32c", crc);
	json_write_text(w, "sha256", file->table_sha);
	json_write_close(w);
}

bool index_has_table(const struct index *index)
{
	for (size_t i = 0; i < index->file_count; i = next_home(index, i)) {
		if (index->files[i].table_at)
			return true;
	}
	return false;
}
