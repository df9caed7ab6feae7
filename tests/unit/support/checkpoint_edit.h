/* SPDX-License-Identifier: MIT */
/* Changes one thing in a checkpoint and updates its checksums, so that all else is right. */
#ifndef EMBENG_TESTS_CHECKPOINT_EDIT_H
#define EMBENG_TESTS_CHECKPOINT_EDIT_H

#include "engine/hash/crc32c.h"
#include "engine/hash/sha256.h"
#include "runtime/src/base/file.h"
#include "runtime/src/checkpoint/index.h"
#include "checkpoint_help.h"

#define EDIT_BYTES 65536

/* Reads a file into @text, which has EDIT_BYTES. */
static inline size_t edit_read(const char *folder, const char *name, char *text)
{
	char *path = file_path(folder, name);
	FILE *file = fopen(path, "rb");
	size_t length;

	ck_assert_ptr_nonnull(file);
	length = fread(text, 1, EDIT_BYTES, file);
	ck_assert_uint_lt(length, EDIT_BYTES);
	text[length] = '\0';
	fclose(file);
	free(path);
	return length;
}

static inline void edit_write(const char *folder, const char *name, const char *text, size_t length)
{
	char *path = file_path(folder, name);
	FILE *file = fopen(path, "wb");

	ck_assert_ptr_nonnull(file);
	ck_assert_uint_eq(fwrite(text, 1, length, file), length);
	ck_assert_int_eq(fclose(file), 0);
	free(path);
}

/* Replaces the first @old, which must be there, by @new. @text has EDIT_BYTES. */
static inline void edit_replace(char *text, const char *old, const char *new)
{
	char *at = strstr(text, old);

	ck_assert_msg(at != NULL, "no \"%s\" in it", old);
	ck_assert_uint_lt(strlen(text) + strlen(new), EDIT_BYTES);
	memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
	memcpy(at, new, strlen(new));
}

/* The index's own checksum: the 8 digits that stand 12 bytes before its end. */
static inline void edit_seal(char *text)
{
	size_t length = strlen(text);
	char digits[9];

	snprintf(digits, sizeof(digits), "%08x", crc32c(0, text, length - 12));
	memcpy(text + length - 12, digits, 8);
}

/* The text behind @key, from @from on. */
static inline char *edit_find(char *from, const char *key)
{
	char *at = strstr(from, key);

	ck_assert_msg(at != NULL, "no %s in it", key);
	return at + strlen(key);
}

/*
 * Puts the checksums of a shard of few chunks right, those in it and those of its table in the index.
 * @shard: all bytes of the file @name
 */
static inline void edit_seal_shard(char *text, const char *name, char *shard, size_t bytes)
{
	char *table = edit_find(edit_find(text, name), "\"chunk_table\": {");
	uint64_t at = strtoull(edit_find(table, "\"at\": "), NULL, 10);
	uint64_t chunks = (at + CHUNK_BYTES - 1) / CHUNK_BYTES;
	uint32_t *sums = (uint32_t *)(void *)(shard + at);
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;
	char digits[65];

	ck_assert_uint_eq(bytes - at, 4 * (chunks + 1));
	for (uint64_t k = 0; k < chunks; k++) {
		uint64_t left = at - k * CHUNK_BYTES;

		sums[k] = crc32c(0, shard + k * CHUNK_BYTES,
				 left < CHUNK_BYTES ? left : CHUNK_BYTES);
	}
	sums[chunks] = crc32c(0, sums, 4 * chunks);
	snprintf(digits, sizeof(digits), "%08x", crc32c(0, sums + chunks, 4));
	memcpy(edit_find(table, "\"crc32c\": \""), digits, 8);
	sha256_init(&sha);
	sha256_update(&sha, sums, 4 * chunks);
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(digits + 2 * i, 3, "%02x", digest[i]);
	memcpy(edit_find(table, "\"sha256\": \""), digits, 64);
}

/* The checksum of all digits of "sha256" or, in older checkpoints, of "chunks". */
static inline void edit_seal_chunks(char *text)
{
	static const char old[] = "\"chunks\": \"", new[] = "\"sha256\": \"";
	static const char sha_key[] = "\"chunks_sha256\": \"";
	const char *key = strstr(text, new) ? new : old;
	unsigned char digest[SHA256_BYTES];
	struct sha256 sha;
	char digits[65], *end = strstr(text, sha_key);

	sha256_init(&sha);
	for (char *at = strstr(text, key); at; at = strstr(at, key)) {
		at += strlen(key);
		sha256_update(&sha, at, strcspn(at, "\""));
	}
	sha256_final(&sha, digest);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(digits + 2 * i, 3, "%02x", digest[i]);
	ck_assert_ptr_nonnull(end);
	memcpy(end + strlen(sha_key), digits, 64);
}

/* Two tables over three shards: "t" of 6 x 2 with accumulators, "u" of 3 x 2; feature "f". */
static inline void edit_save(const char *folder)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)}, {"u", 3, 2, {0}}};
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 64, .program_state = "x"};
	struct embeng *e = help_open(test_device("soft:cores=1,memory=1M"), tables, 2);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
}

static inline int edit_open(const char *folder)
{
	struct embeng_checkpoint *c = NULL;
	int ret = embeng_checkpoint_open(folder, &c, NULL);

	if (ret)
		ck_assert_ptr_null(c);
	embeng_checkpoint_close(c);
	return ret;
}

#endif
