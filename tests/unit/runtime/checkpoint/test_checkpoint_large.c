// SPDX-License-Identifier: MIT
/* Offsets beyond 32 bits: a shard of 2^33 rows, zeros but for the last two, mostly a hole. */
#include <fcntl.h>

#include "runtime/src/checkpoint/open.h"
#include "checkpoint_edit.h"

#define ROWS (1ll << 33)
#define BYTES_OF_ROWS (4ull * ROWS)

static const float last[] = {7.5f, -3.25f};

/* The shard as a save would write it, without writing the zeros. */
static void write_sparse(const char *folder, const struct index_file *file, const char *header,
			 size_t header_bytes)
{
	char *path = file_path(folder, file->name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)file->bytes), 0);
	ck_assert_int_eq(pwrite(fd, header, header_bytes, 0), (ssize_t)header_bytes);
	ck_assert_int_eq(pwrite(fd, last, sizeof(last), (off_t)(file->bytes - sizeof(last))),
			 sizeof(last));
	close(fd);
	free(path);
}

static void set_crcs(struct index *index, const char *header, size_t header_bytes)
{
	static char chunk[CHUNK_BYTES_MOST];
	const struct index_file *file = &index->files[0];
	uint64_t rest = file->bytes % CHUNK_BYTES_MOST;
	uint32_t zeros;

	memset(chunk, 0, sizeof(chunk));
	zeros = crc32c(0, chunk, CHUNK_BYTES_MOST);
	for (uint64_t i = 0; i < index->chunk_count; i++)
		index->crcs[i] = zeros;
	memcpy(chunk, header, header_bytes);
	index->crcs[0] = crc32c(0, chunk, CHUNK_BYTES_MOST);
	memset(chunk, 0, header_bytes);
	memcpy(chunk + rest - sizeof(last), last, sizeof(last));
	index->crcs[index->chunk_count - 1] = crc32c(0, chunk, rest);
}

static void write_checkpoint(const char *folder)
{
	const struct help_table t = {"t", ROWS, 1, {0}};
	struct safetensor tensor = {.name = "t/parameters", .rows = ROWS, .dim = 1};
	struct index index = {
		.model = help_model(&t, 1), .chunk_bytes = CHUNK_BYTES_MOST, .file_count = 1};
	size_t header_bytes, length;
	char *header, *text;

	help_expect_ok(safetensors_header(&tensor, 1, NULL, 0, &header, &header_bytes));
	index.files = calloc(1, sizeof(*index.files));
	index.files[0] = (struct index_file){
		.bytes = header_bytes + BYTES_OF_ROWS, .rows = ROWS, .at = {tensor.offset}};
	shard_name(index.files[0].name, 0, 1, 0);
	index.chunk_count = chunks_of(&index, index.files[0].bytes);
	index.crcs = calloc(index.chunk_count, sizeof(*index.crcs));
	set_crcs(&index, header, header_bytes);
	write_sparse(folder, &index.files[0], header, header_bytes);
	help_expect_ok(index_write(&index, &text, &length));
	edit_write(folder, INDEX_NAME, text, length);
	free(text);
	free(header);
	index_free(&index);
}

START_TEST(reads_rows_beyond_2_to_32)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	const struct checkpoint_piece *pieces;
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float data[3];

	folder_new(folder);
	write_checkpoint(folder);
	c = help_checkpoint(folder);
	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	ck_assert_uint_eq(info.chunk_count, (1ull << 35 >> 22) + 1);
	ck_assert_int_eq(checkpoint_pieces(c, 0, 0, &pieces), 1);
	ck_assert_int_eq(pieces->count, ROWS);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, ROWS - 3, 3, data));
	ck_assert(data[0] == 0 && data[1] == last[0] && data[2] == last[1]);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 1ll << 32, 3, data));
	ck_assert(data[0] == 0 && data[1] == 0 && data[2] == 0);
	help_expect_ok(checkpoint_check(c, pieces, BYTES_OF_ROWS - 8, 8));
	ck_assert(pieces->rows[ROWS - 1] == last[1]);
	help_expect(embeng_checkpoint_read(c, 0, NULL, ROWS - 1, 2, data), -ERANGE, "8589934592");
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

START_TEST(sees_a_fault_beyond_2_to_32)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH], *path;
	float data[1];
	int fd;

	folder_new(folder);
	write_checkpoint(folder);
	c = help_checkpoint(folder);
	path = file_path(folder, c->index.files[0].name);
	fd = open(path, O_WRONLY);
	ck_assert_int_eq(pwrite(fd, "x", 1, (off_t)(5ull << 32)), 1);
	close(fd);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, (4ll << 32) / 4, 1, data));
	help_expect(embeng_checkpoint_read(c, 0, NULL, (5ll << 32) / 4, 1, data), -EBADMSG,
		    "offset 21474836480:");
	embeng_checkpoint_close(c);
	free(path);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("checkpoint large", reads_rows_beyond_2_to_32, sees_a_fault_beyond_2_to_32)
