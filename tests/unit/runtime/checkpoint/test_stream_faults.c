// SPDX-License-Identifier: MIT
/*
 * Streams whose files fail: each operation on the spool, on the folder that is unpacked into, and on the
 * one that is packed. The call says so; engine and folder are as they were; no descriptor is left open.
 */
#define _GNU_SOURCE /* O_TMPFILE */
#include <fcntl.h>
#include <stdbool.h>

#include "file_faults.h"
#include "memory_stream.h"
#include "suite.h"

#define OTHER "items.names"

static struct embeng *open_two(void)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)},
					    {"u", 3, 2, embeng_sgd(0.1f)}};

	return help_open("soft:cores=1,memory=1M", tables, 2);
}

static void stream_of(struct embeng *e, uint32_t salt, struct memory_stream *m)
{
	const struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 64};
	struct embeng_writer w = memory_writer(m);

	help_fill(e, salt);
	m->bytes = 0;
	help_expect_ok(embeng_save_stream(e, &w, &o));
}

static size_t descriptors(void)
{
	static char names[HELP_FILES][256];

	return folder_files("/proc/self/fd", names, HELP_FILES);
}

static void expect_salt(const char *folder, uint32_t salt)
{
	struct embeng_checkpoint *c = help_checkpoint(folder);

	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, salt);
	embeng_checkpoint_close(c);
}

/*
 * Restores the stream of tables 1 over tables 2, with one file operation failing after the other, until
 * none is left to fail. @open: in place of the usual one, or NULL.
 */
static void restore_with_each_fault(struct embeng *e, struct memory_stream *m, const char *folder,
				    int code, bool keeps, int (*open)(const char *, int))
{
	size_t open_before = descriptors();
	char names[4][256];
	int left, ret;

	for (left = 0;; left++) {
		struct embeng_reader r = memory_reader(m);

		r.spool = folder;
		arm(left, code, keeps);
		faulty_ops.open = open ? open : faulty_ops.open;
		ret = embeng_restore_stream(e, &r, NULL);
		disarm();
		ck_assert_uint_eq(descriptors(), open_before);
		ck_assert_uint_eq(folder_files(folder, names, 4), 0);
		if (!fault.done)
			break;
		ck_assert_int_eq(ret, fault.hit == FAULT_COPY ? -EIO : code);
		expect_text(fault.hit == FAULT_COPY ? "the stream" : folder);
		help_expect_tables(e, 2);
	}
	help_expect_ok(ret);
	help_expect_tables(e, 1);
	ck_assert_int_gt(left, 20);
}

static void restore_by_spool(int code, bool keeps, int (*open)(const char *, int))
{
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	char folder[HELP_PATH];

	folder_new(folder);
	disarm();
	stream_of(e, 1, &m);
	help_fill(e, 2);
	restore_with_each_fault(e, &m, folder, code, keeps, open);
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(folder);
}

START_TEST(each_operation_of_a_spool_fails)
{
	restore_by_spool(-ENOSPC, true, NULL);
}
END_TEST

static int open_without_tmpfile(const char *path, int flags)
{
	return (flags & O_TMPFILE) == O_TMPFILE ? -EOPNOTSUPP : fault_open(path, flags);
}

/* A file system that makes no file without a name. */
START_TEST(a_spool_that_had_a_name_for_a_moment)
{
	restore_by_spool(-EIO, false, open_without_tmpfile);
}
END_TEST

START_TEST(a_spool_that_is_not_there)
{
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	struct embeng_reader r;

	disarm();
	stream_of(e, 1, &m);
	r = memory_reader(&m);
	r.spool = "/no/such/folder";
	help_expect(embeng_restore_stream(e, &r, NULL), -ENOENT,
		    "/no/such/folder: the rows of a stream cannot be kept there");
	expect_text("name another folder as spool of struct embeng_reader, or in TMPDIR");
	setenv("TMPDIR", "/no/such/tmp", 1);
	r = memory_reader(&m);
	help_expect(embeng_restore_stream(e, &r, NULL), -ENOENT, "/no/such/tmp: the rows");
	unsetenv("TMPDIR");
	r = memory_reader(&m);
	help_expect_ok(embeng_restore_stream(e, &r, NULL));
	embeng_close(e);
	memory_stream_free(&m);
}
END_TEST

/* The names in the folder but for the lock, which a failed call may leave. */
static size_t count_files(const char *folder)
{
	static char names[HELP_FILES][256];
	size_t count = folder_files(folder, names, HELP_FILES), others = count;

	for (size_t i = 0; i < count; i++)
		others -= !strcmp(names[i], ".embeng.lock");
	return others;
}

/* A new folder with the checkpoint of salt 1. */
static void begin_folder(struct embeng *e, char *folder)
{
	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
}

/* The salt of the folder's checkpoint, every value of which is right. */
static uint32_t salt_of(const char *folder)
{
	struct embeng_checkpoint *c = help_checkpoint(folder);
	float row[2];
	uint32_t salt;

	help_expect_ok(embeng_checkpoint_read(c, 0, NULL, 0, 1, row));
	embeng_checkpoint_close(c);
	salt = row[0] == help_value(0, 0, 0, 1) ? 1 : 2;
	expect_salt(folder, salt);
	return salt;
}

static int unpack_with_fault(struct memory_stream *m, const char *folder, int left)
{
	struct embeng_reader r = memory_reader(m);
	size_t open_before = descriptors();
	int ret;

	arm(left, -EIO, false);
	ret = embeng_checkpoint_unpack(&r, folder, NULL, NULL);
	disarm();
	ck_assert_uint_eq(descriptors(), open_before);
	return ret;
}

/*
 * Into a folder that has a checkpoint. Files that cannot be listed or removed are in nobody's way; when the
 * sync behind the rename fails the new checkpoint is there.
 */
START_TEST(each_operation_of_unpacking_fails)
{
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	unsigned int kinds = 0;
	char folder[HELP_PATH];
	size_t files_before;
	int left, ret;

	disarm();
	stream_of(e, 2, &m);
	begin_folder(e, folder);
	files_before = count_files(folder);
	for (left = 0;; left++) {
		ret = unpack_with_fault(&m, folder, left);
		if (!fault.done)
			break;
		kinds |= ret ? 1u << fault.hit : 0;
		ck_assert(!ret || ret == -EIO);
		if (ret)
			expect_text(folder);
		if (salt_of(folder) == 1) {
			ck_assert(ret);
			if (fault.hit != FAULT_RENAME && fault.hit != FAULT_SYNC)
				ck_assert_uint_eq(count_files(folder), files_before);
		} else {
			ck_assert(!ret || fault.hit == FAULT_SYNC || fault.hit == FAULT_OPEN);
		}
		folder_remove(folder);
		begin_folder(e, folder);
	}
	help_expect_ok(ret);
	expect_salt(folder, 2);
	ck_assert_int_gt(left, 40);
	ck_assert_uint_eq(kinds, 1u << FAULT_OPEN | 1u << FAULT_SIZE | 1u << FAULT_READ |
					 1u << FAULT_WRITE | 1u << FAULT_SYNC | 1u << FAULT_MAP |
					 1u << FAULT_COPY | 1u << FAULT_LOCK | 1u << FAULT_RENAME |
					 1u << FAULT_FOLDER);
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(folder);
}
END_TEST

START_TEST(each_operation_of_packing_fails)
{
	const char *const files[] = {OTHER, "not-there"};
	const struct embeng_pack_options o = {.size = sizeof(o), .files = files, .file_count = 2};
	struct embeng *e = open_two();
	char folder[HELP_PATH], path[HELP_PATH + 32];
	struct embeng_checkpoint *c;
	struct memory_stream m = {0};
	size_t open_before;
	int left, ret;

	folder_new(folder);
	disarm();
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	snprintf(path, sizeof(path), "%s/" OTHER, folder);
	help_expect_ok(file_make(path, "one\ntwo\n", 8));
	c = help_checkpoint(folder);
	open_before = descriptors();
	for (left = 0;; left++) {
		struct embeng_writer w = memory_writer(&m);

		m.bytes = 0;
		arm(left, -EACCES, false);
		ret = embeng_checkpoint_pack(c, &w, &o, NULL);
		disarm();
		ck_assert_uint_eq(descriptors(), open_before);
		if (!fault.done)
			break;
		ck_assert_int_eq(ret, fault.hit == FAULT_COPY ? -EIO : -EACCES);
		expect_text(folder);
	}
	help_expect_ok(ret);
	ck_assert_int_gt(left, 5);
	ck_assert_ptr_nonnull(memmem(m.data, m.bytes, "one\ntwo\n", 8));
	embeng_checkpoint_close(c);
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(folder);
}
END_TEST

/* A pair of a stream and a folder with another file. */
static void pack_with_names(struct embeng *e, const char *folder, struct memory_stream *m)
{
	const char *const files[] = {OTHER};
	const struct embeng_pack_options o = {.size = sizeof(o), .files = files, .file_count = 1};
	struct embeng_writer w = memory_writer(m);
	struct embeng_checkpoint *c;
	char path[HELP_PATH + 32];

	help_expect_ok(embeng_save(e, folder, NULL));
	snprintf(path, sizeof(path), "%s/" OTHER, folder);
	help_expect_ok(file_make(path, "one\ntwo\n", 8));
	c = help_checkpoint(folder);
	help_expect_ok(embeng_checkpoint_pack(c, &w, &o, NULL));
	embeng_checkpoint_close(c);
}

START_TEST(other_files_go_along_if_they_are_named)
{
	const char *const files[] = {OTHER};
	const struct embeng_pack_options o = {.size = sizeof(o), .files = files, .file_count = 1};
	char from[HELP_PATH], to[HELP_PATH], path[HELP_PATH + 32], *text;
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	struct embeng_checkpoint *c;
	struct embeng_reader r;
	struct embeng_writer w;
	size_t length;

	folder_new(from);
	folder_new(to);
	disarm();
	help_fill(e, 3);
	pack_with_names(e, from, &m);
	snprintf(path, sizeof(path), "%s/" OTHER, to);
	r = memory_reader(&m);
	help_expect_ok(embeng_checkpoint_unpack(&r, to, NULL, NULL));
	ck_assert_int_ne(access(path, F_OK), 0);
	/* The same checkpoint once more: its files are there, and stay as they are. */
	r = memory_reader(&m);
	help_expect(embeng_checkpoint_unpack(&r, to, &o, NULL), -EEXIST, "is there already");
	expect_salt(to, 3);
	folder_remove(to);
	folder_new(to);
	snprintf(path, sizeof(path), "%s/" OTHER, to);
	r = memory_reader(&m);
	help_expect_ok(embeng_checkpoint_unpack(&r, to, &o, NULL));
	help_expect_ok(file_read_whole(path, 100, &text, &length));
	ck_assert_str_eq(text, "one\ntwo\n");
	free(text);
	/* Both are ignored where rows alone are wanted. */
	r = memory_reader(&m);
	help_fill(e, 4);
	help_expect_ok(embeng_restore_stream(e, &r, NULL));
	help_expect_tables(e, 3);
	r = memory_reader(&m);
	help_expect_ok(embeng_checkpoint_open_stream(&r, NULL, NULL, &c, NULL));
	w = memory_writer(&m);
	help_expect(embeng_checkpoint_pack(c, &w, &o, NULL), -EINVAL, "has no folder with");
	embeng_checkpoint_close(c);
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(from);
	folder_remove(to);
}
END_TEST

/* Unpacking keeps the checkpoint that was there, as a save does. */
START_TEST(the_older_checkpoint_is_kept)
{
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	char folder[HELP_PATH];
	struct embeng_reader r;
	float row[2];

	folder_new(folder);
	disarm();
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	stream_of(e, 2, &m);
	r = memory_reader(&m);
	help_expect_ok(embeng_checkpoint_unpack(&r, folder, NULL, NULL));
	expect_salt(folder, 2);
	help_read_earlier(folder, 1, 4, row);
	ck_assert(row[0] == help_value(0, 0, 8, 1));
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(folder);
}
END_TEST

/* A stream that is broken leaves a folder as it was, and none where there was none. */
START_TEST(a_broken_stream_is_not_unpacked)
{
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	char folder[HELP_PATH], fresh[HELP_PATH + 8];
	size_t whole, files_before;

	folder_new(folder);
	disarm();
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	files_before = count_files(folder);
	snprintf(fresh, sizeof(fresh), "%s/new", folder);
	stream_of(e, 2, &m);
	whole = m.bytes;
	for (size_t at = 5; at < whole; at += 97) {
		struct embeng_reader r;
		struct embeng_error error = {.size = sizeof(error)};

		m.bytes = at;
		r = memory_reader(&m);
		help_expect(embeng_checkpoint_unpack(&r, folder, NULL, NULL), -EBADMSG,
			    "it ends there");
		ck_assert_uint_eq(count_files(folder), files_before);
		m.bytes = whole;
		m.data[at] ^= 16;
		r = memory_reader(&m);
		ck_assert_int_eq(embeng_checkpoint_unpack(&r, folder, NULL, NULL), -EBADMSG);
		ck_assert_uint_eq(count_files(folder), files_before);
		r = memory_reader(&m);
		ck_assert_int_eq(embeng_checkpoint_unpack(&r, fresh, NULL, &error), -EBADMSG);
		ck_assert_uint_gt(strlen(error.text), 20);
		ck_assert_int_ne(access(fresh, F_OK), 0);
		m.data[at] ^= 16;
	}
	expect_salt(folder, 1);
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(folder);
}
END_TEST

/* Damage on disk does not get into a stream. */
START_TEST(a_damaged_checkpoint_is_not_packed)
{
	struct embeng *e = open_two();
	struct memory_stream m = {0};
	struct embeng_writer w = memory_writer(&m);
	char folder[HELP_PATH], names[8][256], path[2 * HELP_PATH];
	struct embeng_checkpoint *c;
	size_t count;

	folder_new(folder);
	disarm();
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	count = folder_files(folder, names, 8);
	for (size_t i = 0; i < count; i++) {
		FILE *f;

		if (!strstr(names[i], ".safetensors"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		f = fopen(path, "r+");
		ck_assert_ptr_nonnull(f);
		fseek(f, 400, SEEK_SET);
		fputc('!', f);
		fclose(f);
	}
	c = help_checkpoint(folder);
	help_expect(embeng_checkpoint_pack(c, &w, NULL, NULL), -EBADMSG, "offset 0: the ");
	ck_assert_uint_le(m.bytes, 1024);
	embeng_checkpoint_close(c);
	embeng_close(e);
	memory_stream_free(&m);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_operation_of_a_spool_fails);
	tcase_add_test(tcase, a_spool_that_had_a_name_for_a_moment);
	tcase_add_test(tcase, a_spool_that_is_not_there);
	tcase_add_test(tcase, each_operation_of_unpacking_fails);
	tcase_add_test(tcase, each_operation_of_packing_fails);
	tcase_add_test(tcase, other_files_go_along_if_they_are_named);
	tcase_add_test(tcase, the_older_checkpoint_is_kept);
	tcase_add_test(tcase, a_broken_stream_is_not_unpacked);
	tcase_add_test(tcase, a_damaged_checkpoint_is_not_packed);
}

int main(void)
{
	return suite_main("stream faults", add);
}
