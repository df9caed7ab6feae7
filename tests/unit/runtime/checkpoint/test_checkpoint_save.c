// SPDX-License-Identifier: MIT
/* Saves: canceled, beside others, into folders with strange things in them. */
#include "runtime/src/checkpoint/index.h"
#include "runtime/src/session/session.h"
#include "checkpoint_help.h"

START_TEST(a_save_is_canceled_at_each_call)
{
	static char names[HELP_FILES][256];
	struct help_watch w = {.what = "save"};
	struct embeng_save_options o = {.size = sizeof(o),
					.shard_bytes = 20000,
					.progress = help_watch,
					.progress_arg = &w};
	struct embeng *e = open_all(SMALL);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];
	unsigned int calls;
	size_t files;

	help_never_sync();
	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	ck_assert_uint_eq(w.done, w.total);
	calls = w.calls;
	ck_assert_uint_gt(calls, 50);
	files = folder_files(folder, names, HELP_FILES);
	help_fill(e, 2);
	for (unsigned int at = 1; at <= calls; at++) {
		w = (struct help_watch){.what = "save", .cancel_at = at};
		help_expect(embeng_save(e, folder, &o), -ECANCELED, "is as it was");
		ck_assert_uint_eq(w.calls, at);
		ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), files);
	}
	c = help_checkpoint(folder);
	help_expect_checkpoint(c, 1);
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
	file_ops = &file_ops_system;
}
END_TEST

/* -- who else uses the folder ---------------------------------------------- */

START_TEST(what_is_open_stays_what_it_was)
{
	struct embeng *e = open_all(SMALL);
	struct embeng_checkpoint *old, *new;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	old = help_checkpoint(folder);
	help_fill(e, 2);
	help_expect_ok(embeng_save(e, folder, NULL));
	new = help_checkpoint(folder);
	help_expect_checkpoint(old, 1);
	help_expect_checkpoint(new, 2);
	help_expect_ok(embeng_checkpoint_verify(old, NULL, NULL));
	embeng_checkpoint_close(old);
	embeng_checkpoint_close(new);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A second save from inside of the first one. */
static int save_inside(void *arg, const struct embeng_progress *p)
{
	const struct help_table t = {"t", 4, 1, {0}};
	struct embeng *e = help_open(test_device("soft:cores=1,memory=1M"), &t, 1);

	(void)p;
	help_expect(embeng_save(e, arg, NULL), -EBUSY, "another save into this folder");
	embeng_close(e);
	return 0;
}

START_TEST(one_save_at_a_time)
{
	struct embeng *e = open_all(SMALL);
	char folder[HELP_PATH];
	struct embeng_save_options o = {.size = sizeof(o),
					.shard_bytes = 1 << 20,
					.progress = save_inside,
					.progress_arg = folder};

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Between a reader's look at the index and at the shards a save replaces both. */
static struct embeng *saver;
static const char *saved_folder;
static const struct embeng_save_options in_many_shards = {.size = sizeof(in_many_shards),
							  .shard_bytes = 1 << 16};

static int map_after_a_save(int fd, uint64_t bytes, const void **map)
{
	const struct embeng_save_options o = {.size = sizeof(o), .shard_bytes = 1 << 16, .keep = 1};
	struct embeng *e = saver;

	saver = NULL;
	if (e)
		help_expect_ok(embeng_save(e, saved_folder, &o));
	return file_ops_system.map(fd, bytes, map);
}

START_TEST(a_reader_overtaken_by_a_save_looks_again)
{
	static struct file_ops ops;
	struct embeng *e = open_all(SMALL);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &in_many_shards));
	help_fill(e, 2);
	saver = e;
	saved_folder = folder;
	ops = file_ops_system;
	ops.map = map_after_a_save;
	file_ops = &ops;
	c = help_checkpoint(folder);
	file_ops = &file_ops_system;
	ck_assert_ptr_null(saver);
	help_expect_checkpoint(c, 2);
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void put_file(const char *folder, const char *name, const char *text)
{
	char *path = file_path(folder, name);
	FILE *file = fopen(path, "w");

	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
	free(path);
}

static bool has_file(const char *folder, const char *name)
{
	char *path = file_path(folder, name);
	bool there = !access(path, F_OK);

	free(path);
	return there;
}

START_TEST(only_our_own_leftovers_are_removed)
{
	static const char *const others[] = {"model.safetensors", "embeng.txt", "x.index.tmp",
					     "embeng-1-0123456789abcdef-1.safetensors"};
	static const char *const ours[] = {"embeng-1-0123456789abcdef-00000001.safetensors",
					   "embeng-0123456789abcdef.index.tmp"};
	struct embeng *e = open_all(SMALL);
	char folder[HELP_PATH];

	folder_new(folder);
	for (size_t i = 0; i < 4; i++)
		put_file(folder, others[i], "theirs");
	for (size_t i = 0; i < 2; i++)
		put_file(folder, ours[i], "left");
	help_expect_ok(embeng_save(e, folder, NULL));
	for (size_t i = 0; i < 4; i++)
		ck_assert(has_file(folder, others[i]));
	for (size_t i = 0; i < 2; i++)
		ck_assert(!has_file(folder, ours[i]));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

#define LEFTOVER "embeng-1-0123456789abcdef-00000001.safetensors"

static int expect_no_leftover(void *arg, const struct embeng_progress *p)
{
	(void)p;
	ck_assert(!has_file(arg, LEFTOVER));
	return 0;
}

/* A disk that a dead save filled has room again before the next one writes. */
START_TEST(leftovers_go_before_anything_is_written)
{
	struct embeng *e = open_all(SMALL);
	char folder[HELP_PATH];
	struct embeng_save_options o = {
		.size = sizeof(o), .progress = expect_no_leftover, .progress_arg = folder};

	folder_new(folder);
	for (int i = 0; i < 2; i++) {
		put_file(folder, LEFTOVER, "left");
		help_expect_ok(embeng_save(e, folder, &o));
	}
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(a_foreign_index_is_left_alone)
{
	static const char *const texts[] = {"", "hello", "[]", "{\"schema\": \"a/1\"}", "{}"};
	static char names[HELP_FILES][256];
	struct embeng *e = open_all(SMALL);
	char folder[HELP_PATH];

	folder_new(folder);
	put_file(folder, "embeng-1-0123456789abcdef-00000001.safetensors", "whose?");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		put_file(folder, INDEX_NAME, texts[i]);
		help_expect(embeng_save(e, folder, NULL), -EBADMSG, "left alone");
		ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), 3);
	}
	/* One of ours that cannot be read in full is replaced. */
	put_file(folder, INDEX_NAME, "{\"schema\": \"embeng.checkpoint.index/1\"}");
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_checkpoint_close(help_checkpoint(folder));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- what cannot be saved -------------------------------------------------- */

static void expect_name_refused(const char *name)
{
	const struct help_table t = {name, 4, 1, {0}};
	struct embeng *e = help_open(test_device("soft:cores=1,memory=1M"), &t, 1);
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect(embeng_save(e, folder, NULL), -EINVAL, "name of table 0: byte 1 is not UTF-8");
	embeng_close(e);
	folder_remove(folder);
}

START_TEST(names_must_be_utf8)
{
	static const char *const bad[] = {
		"a\x80",	 "a\xc3",	  "a\xc0\x80",	       "a\xff",
		"a\xe0\x80\x80", "a\xed\xa0\x80", "a\xf0\x80\x80\x80", "a\xf4\x90\x80\x80",
		"a\xe2\x82"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_name_refused(bad[i]);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_save)
{
	const struct help_table t = {"\xf0\x9f\x98\x80\xe2\x82\xac\xc3\xa9", 60001, 1, {0}};
	struct embeng_save_options o = {.size = sizeof(o)};
	struct embeng *e = help_open(test_device("soft:cores=1,memory=1M"), &t, 1);
	char folder[HELP_PATH], *long_text = malloc(PROGRAM_STATE_MAX + 2);

	folder_new(folder);
	help_expect(embeng_save(NULL, folder, NULL), -EINVAL, "no handle");
	help_expect(embeng_save(e, NULL, NULL), -EINVAL, "no folder");
	o.shard_bytes = 1;
	help_expect(embeng_save(e, folder, &o), -ERANGE, "makes more than 60000 files");
	memset(long_text, 'x', PROGRAM_STATE_MAX + 1);
	long_text[PROGRAM_STATE_MAX + 1] = '\0';
	o.program_state = long_text;
	help_expect(embeng_save(e, folder, &o), -ERANGE, "at most 67108864");
	o.program_state = "\xff";
	help_expect(embeng_save(e, folder, &o), -EINVAL, "program_state 0: byte 0 is not UTF-8");
	o.size = 1;
	help_expect(embeng_save(e, folder, &o), -EINVAL, "embeng_save_options: size 1");
	help_expect(embeng_save(e, "/nowhere/at/all", NULL), -ENOENT, "/nowhere/at/all");
	free(long_text);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(tables_that_lack_an_update_are_not_saved)
{
	static char names[HELP_FILES][256];
	struct embeng *e = open_all(SMALL);
	struct embeng_checkpoint *c;
	char folder[HELP_PATH];

	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	help_fill(e, 2);
	/* As the library keeps it in mind when the engine has no memory for an update. */
	e->failed = -ENOMEM;
	strcpy(e->failed_text, "step 3: no memory");
	help_expect(embeng_save(e, folder, NULL), -ENOMEM, "step 3: no memory");
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), 3);
	c = help_checkpoint(folder);
	help_expect_checkpoint(c, 1);
	embeng_checkpoint_close(c);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("save", a_save_is_canceled_at_each_call, what_is_open_stays_what_it_was,
	  one_save_at_a_time, a_reader_overtaken_by_a_save_looks_again,
	  only_our_own_leftovers_are_removed, leftovers_go_before_anything_is_written,
	  a_foreign_index_is_left_alone, names_must_be_utf8, says_what_is_wrong_with_a_save,
	  tables_that_lack_an_update_are_not_saved)
