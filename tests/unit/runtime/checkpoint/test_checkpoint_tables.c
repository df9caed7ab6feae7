// SPDX-License-Identifier: MIT
/*
 * The tables of checksums in shards: opening a checkpoint reads none of them, the first use of a row reads
 * what stands for the chunk around it, and damage of one is found by whoever needs it, and by nobody else.
 */
#include "checkpoint_edit.h"
#include "runtime/src/checkpoint/open.h"
#include "suite.h"

#define ROOMY "soft:cores=1,memory=64M"
#define ROWS 70000 /* 1163 chunks, so that the table has two parts */
#define DIM 17
#define COPIES_MOST 65536

/* All copies out of shards. */
static struct {
	struct file_ops ops;
	const char *from[COPIES_MOST];
	uint64_t bytes[COPIES_MOST];
	size_t count;
} copies;

static int note_copy(void *to, const void *from, uint64_t bytes)
{
	ck_assert_uint_lt(copies.count, COPIES_MOST);
	copies.from[copies.count] = from;
	copies.bytes[copies.count++] = bytes;
	return file_ops_system.copy(to, from, bytes);
}

static void note_copies(void)
{
	copies.ops = file_ops_system;
	copies.ops.copy = note_copy;
	copies.ops.sync = help_no_sync;
	copies.count = 0;
	file_ops = &copies.ops;
}

/* Bytes that were copied out of the table of a shard. */
static uint64_t table_bytes(const struct embeng_checkpoint *c, size_t file)
{
	const char *from = shard_map(c, file) + c->index.files[file].table_at;
	const char *end = shard_map(c, file) + c->index.files[file].bytes;
	uint64_t bytes = 0;

	for (size_t i = 0; i < copies.count; i++) {
		if (copies.from[i] >= from && copies.from[i] < end)
			bytes += copies.bytes[i];
	}
	return bytes;
}

/* A table over three shards and one of its own, or a large one. */
static void save_tables(const char *folder, bool large)
{
	const struct help_table few[] = {{"t", 600, 16, {0}}, {"u", 3, 2, {0}}};
	const struct help_table many = {"t", ROWS, DIM, {0}};
	struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = large ? 0 : 200 * 16 * 4};
	struct embeng *e = large ? help_open(ROOMY, &many, 1) : help_open(ROOMY, few, 2);

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
}

START_TEST(opening_reads_no_table)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float row[16];

	folder_new(folder);
	save_tables(folder, false);
	note_copies();
	c = help_checkpoint(folder);
	ck_assert_uint_eq(c->index.file_count, 4);
	ck_assert_uint_gt(copies.count, 0);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(table_bytes(c, i), 0);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 250, 1, row));
	ck_assert_float_eq(row[3], help_value(0, 0, 250 * 16 + 3, 1));
	/* Four checksums, theirs twice, and the chunk's own. */
	ck_assert_uint_eq(table_bytes(c, 1), 4 * 4 + 2 * 4 + 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert(i == 1 || !table_bytes(c, i));
	/* The second use of a chunk reads none. */
	copies.count = 0;
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 250, 1, row));
	ck_assert_uint_eq(table_bytes(c, 1), 0);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* The first row of a large shard does not read the whole table. */
START_TEST(a_part_of_a_table_is_read)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float row[DIM];

	folder_new(folder);
	save_tables(folder, true);
	note_copies();
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, ROWS - 1, 1, row));
	ck_assert_uint_eq(table_bytes(c, 0), (1163 - 1024) * 4 + 2 * 4 + 4 + 4);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 0, 1, row));
	ck_assert_uint_eq(table_bytes(c, 0), 1163 * 4 + 2 * 4 + 2 * 4 + 2 * 4);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

static void flip_byte(const struct embeng_checkpoint *c, size_t file, uint64_t at)
{
	char *path = file_path(c->folder, c->index.files[file].name);
	FILE *f = fopen(path, "r+b");
	int byte;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
	byte = fgetc(f);
	ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
	ck_assert_int_eq(fputc(byte ^ 1, f), byte ^ 1);
	ck_assert_int_eq(fclose(f), 0);
	free(path);
}

/* The damage is among the checksums of the second shard, or in the checksum of these. */
START_TEST(a_broken_table_spares_other_shards)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float row[16];

	folder_new(folder);
	save_tables(folder, false);
	c = help_checkpoint(folder);
	flip_byte(c, 1,
		  _i ? c->index.files[1].bytes - 1 : c->index.files[1].table_at + (uint64_t)5);
	embeng_checkpoint_close(c);
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 0, 1, row));
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 599, 1, row));
	help_expect_ok(embeng_checkpoint_read(c, 1, NULL, 0, 1, row));
	help_expect(embeng_checkpoint_read(c, 0, NULL, 200, 1, row), -EBADMSG,
		    c->index.files[1].name);
	help_expect(embeng_checkpoint_verify(c, NULL, NULL), -EBADMSG, c->index.files[1].name);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* Damage of one part of the checksums is none of the rows whose checksums stand in the other. */
START_TEST(a_broken_part_spares_the_other)
{
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	float row[DIM];

	folder_new(folder);
	save_tables(folder, true);
	c = help_checkpoint(folder);
	flip_byte(c, 0, c->index.files[0].table_at + (_i ? 4096 : 0));
	embeng_checkpoint_close(c);
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, _i ? 0 : ROWS - 1, 1, row));
	help_expect(embeng_checkpoint_read(c, 0, NULL, _i ? ROWS - 1 : 0, 1, row), -EBADMSG,
		    "do not match their checksum");
	help_expect(embeng_checkpoint_verify(c, NULL, NULL), -EBADMSG, c->index.files[0].name);
	embeng_checkpoint_close(c);
	folder_remove(folder);
}
END_TEST

/* The header's size depends on the table's, and that on the header's: about a chunk's border. */
START_TEST(shards_of_all_sizes_are_whole)
{
	char folder[HELP_PATH];

	folder_new(folder);
	help_never_sync();
	for (int64_t rows = 900; rows < 1030; rows++) {
		const struct help_table t = {"t", rows, 1, {0}};
		struct embeng *e = help_open(ROOMY, &t, 1);
		struct embeng_checkpoint *c;

		help_fill(e, 1);
		help_expect_ok(embeng_save(e, folder, NULL));
		c = help_checkpoint(folder);
		help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
		ck_assert_uint_eq(c->index.chunk_count, (c->index.files[0].table_at + 4095) / 4096);
		embeng_checkpoint_close(c);
		embeng_close(e);
	}
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, opening_reads_no_table);
	tcase_add_test(tcase, a_part_of_a_table_is_read);
	tcase_add_loop_test(tcase, a_broken_table_spares_other_shards, 0, 2);
	tcase_add_loop_test(tcase, a_broken_part_spares_the_other, 0, 2);
	tcase_add_test(tcase, shards_of_all_sizes_are_whole);
}

int main(void)
{
	return suite_main("tables", add);
}
