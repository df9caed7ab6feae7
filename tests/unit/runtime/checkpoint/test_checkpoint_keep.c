// SPDX-License-Identifier: MIT
/* The last checkpoints of a folder: how many stay, in which order, and what breaks them. */
#include "checkpoint_edit.h"
#include "suite.h"

#define SAVES 5

static struct embeng *open_keeper(void)
{
	const struct help_table t = {"t", 9, 2, embeng_adagrad(0.1f)};

	return help_open(SMALL, &t, 1);
}

static int save_number(struct embeng *e, const char *folder, uint32_t number, uint32_t keep)
{
	struct embeng_save_options o = {.size = sizeof(o), .keep = keep, .shard_bytes = 50};

	help_fill(e, number);
	return embeng_save(e, folder, &o);
}

/* Opens the checkpoint @back saves ago, which must be the one of help_fill(@number). */
static void expect_back(const char *folder, size_t back, uint32_t number)
{
	struct embeng_checkpoint *c = NULL;

	help_expect_ok(embeng_checkpoint_open_earlier(folder, back, &c, NULL));
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, number);
	embeng_checkpoint_close(c);
}

static void expect_count(const char *folder, size_t count)
{
	struct embeng_checkpoint *c = NULL;

	help_expect(embeng_checkpoint_open_earlier(folder, count, &c, NULL), -ENODATA,
		    "before the newest");
	ck_assert_ptr_null(c);
}

START_TEST(the_last_ones_stay)
{
	static const struct {
		uint32_t keep;
		size_t kept;
	} cases[] = {{0, 2}, {1, 1}, {2, 2}, {3, 3}, {SAVES, SAVES}, {1000, SAVES}};
	static char names[HELP_FILES][256];
	struct embeng *e = open_keeper();
	char folder[HELP_PATH];
	size_t kept = cases[_i].kept;

	folder_new(folder);
	for (uint32_t k = 1; k <= SAVES; k++)
		help_expect_ok(save_number(e, folder, k, cases[_i].keep));
	for (size_t back = 0; back < kept; back++)
		expect_back(folder, back, SAVES - (uint32_t)back);
	expect_count(folder, kept);
	/* Three shards of three rows and an index each, and the lock. */
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), 4 * kept + 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A later save may keep fewer or more; what is gone does not come back. */
START_TEST(each_save_decides)
{
	struct embeng *e = open_keeper();
	char folder[HELP_PATH];

	folder_new(folder);
	for (uint32_t k = 1; k <= 4; k++)
		help_expect_ok(save_number(e, folder, k, 4));
	expect_count(folder, 4);
	help_expect_ok(save_number(e, folder, 5, 2));
	expect_back(folder, 1, 4);
	expect_count(folder, 2);
	help_expect_ok(save_number(e, folder, 6, 3));
	expect_back(folder, 2, 4);
	expect_count(folder, 3);
	help_expect_ok(save_number(e, folder, 7, 1));
	expect_count(folder, 1);
	help_expect(save_number(e, folder, 8, 1001), -ERANGE, "at most 1000");
	expect_back(folder, 0, 7);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void remove_file(const char *folder, const char *name)
{
	char *path = file_path(folder, name);

	ck_assert_int_eq(unlink(path), 0);
	free(path);
}

static void break_index(const char *folder)
{
	static char text[EDIT_BYTES];
	size_t length = edit_read(folder, INDEX_NAME, text);

	edit_write(folder, INDEX_NAME, text, length - 20);
}

static void garble_index(const char *folder)
{
	static char text[EDIT_BYTES];

	edit_read(folder, INDEX_NAME, text);
	edit_replace(text, "\"step\": 0", "\"step\": 1");
	edit_write(folder, INDEX_NAME, text, strlen(text));
}

static void remove_index(const char *folder)
{
	remove_file(folder, INDEX_NAME);
}

/* Earlier checkpoints can be restored without the newest, and the next save keeps them. */
START_TEST(a_newest_one_that_is_broken)
{
	void (*const faults[])(const char *) = {remove_index, garble_index};
	struct embeng *e = open_keeper();
	struct embeng_checkpoint *c = NULL;
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(save_number(e, folder, 1, 2));
	help_expect_ok(save_number(e, folder, 2, 2));
	faults[_i](folder);
	ck_assert_int_ne(embeng_checkpoint_open(folder, &c, NULL), 0);
	expect_back(folder, 1, 1);
	help_expect_ok(embeng_checkpoint_open_step(folder, 0, &c, NULL));
	help_expect_checkpoint(c, 1);
	embeng_checkpoint_close(c);
	help_expect_ok(save_number(e, folder, 3, 2));
	expect_back(folder, 0, 3);
	expect_back(folder, 1, 1);
	expect_count(folder, 2);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* An index that is cut in its middle is nobody's: it is left alone with all that is there. */
START_TEST(an_index_that_was_cut)
{
	struct embeng *e = open_keeper();
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(save_number(e, folder, 1, 2));
	help_expect_ok(save_number(e, folder, 2, 2));
	break_index(folder);
	help_expect(save_number(e, folder, 3, 2), -EBADMSG, "left alone");
	expect_back(folder, 1, 1);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* -- steps ----------------------------------------------------------------- */

/* A step by hand: the index of a scratch folder gets it, and a restore takes it over. */
static void set_step(struct embeng *e, const char *scratch, const char *member)
{
	static char text[EDIT_BYTES];

	help_expect_ok(save_number(e, scratch, 1, 1));
	edit_read(scratch, INDEX_NAME, text);
	*strstr(text, "\"step\": ") = ' ';
	edit_replace(text, " step\": ", member);
	edit_seal(text);
	edit_write(scratch, INDEX_NAME, text, strlen(text));
	help_expect_ok(embeng_restore(e, scratch, NULL));
}

static int restore_step(struct embeng *e, const char *folder, uint64_t step)
{
	struct embeng_restore_options o = {
		.size = sizeof(o), .flags = EMBENG_RESTORE_STEP, .step = step};

	return embeng_restore(e, folder, &o);
}

/* The newer of two checkpoints of one step is taken, whatever their order by steps. */
/* The later step first, and then by name, in whatever order the folder gives them. */
START_TEST(kept_ones_are_listed_from_the_newest)
{
	static const char *const names[] = {
		"embeng-10-00000000000000aa.index.json", "embeng-10-00000000000000bb.index.json",
		"embeng-9-00000000000000cc.index.json", "embeng-2-00000000000000aa.index.json"};
	struct index index = {0};
	char folder[HELP_PATH];

	folder_new(folder);
	edit_write(folder, "embeng-11-not-one.index.json", "", 0);
	for (size_t i = 0; i < 4; i++)
		edit_write(folder, names[(i + (size_t)_i) % 4], "", 0);
	help_expect_ok(index_list_kept(folder, &index));
	ck_assert_uint_eq(index.earlier_count, 4);
	for (size_t i = 0; i < 4; i++)
		ck_assert_str_eq(index.earlier[i], names[i]);
	index_free(&index);
	folder_remove(folder);
}
END_TEST

START_TEST(a_step_is_chosen)
{
	struct embeng *e = open_keeper(), *fresh;
	struct embeng_checkpoint *c = NULL;
	char folder[HELP_PATH], scratch[HELP_PATH];

	folder_new(folder);
	folder_new(scratch);
	help_expect_ok(save_number(e, folder, 11, 9));
	help_expect_ok(save_number(e, folder, 12, 9));
	set_step(e, scratch, "\"step\": 7, \"was\": ");
	help_expect_ok(save_number(e, folder, 13, 9));
	fresh = open_keeper();
	help_expect_ok(save_number(fresh, folder, 14, 9));
	help_expect_ok(restore_step(fresh, folder, 7));
	help_expect_tables(fresh, 13);
	help_expect_ok(restore_step(fresh, folder, 0));
	help_expect_tables(fresh, 14);
	expect_back(folder, 2, 12);
	expect_back(folder, 3, 11);
	help_expect(restore_step(fresh, folder, 8), -ENODATA, "no checkpoint of step 8");
	help_expect_tables(fresh, 14);
	help_expect(embeng_checkpoint_open_step(folder, 1, &c, NULL), -ENODATA, "of step 1");
	help_expect(embeng_checkpoint_open_step(NULL, 1, &c, NULL), -EINVAL, "must be given");
	help_expect(embeng_checkpoint_open_earlier(folder, 1, NULL, NULL), -EINVAL, "must be");
	embeng_close(fresh);
	embeng_close(e);
	folder_remove(folder);
	folder_remove(scratch);
}
END_TEST

/* -- reading back ------------------------------------------------------------ */

/* A disk that stores something else than it was given. */
static int64_t write_wrong(int fd, const void *data, uint64_t bytes)
{
	static char copy[1 << 16];

	if (bytes != 24 || bytes > sizeof(copy))
		return file_ops_system.write(fd, data, bytes);
	memcpy(copy, data, bytes);
	copy[5] ^= 1;
	return file_ops_system.write(fd, copy, bytes);
}

START_TEST(a_disk_that_lies)
{
	static char names[HELP_FILES][256];
	static struct file_ops ops;
	struct embeng *e = open_keeper();
	char folder[HELP_PATH];

	folder_new(folder);
	help_expect_ok(save_number(e, folder, 1, 2));
	ops = file_ops_system;
	ops.write = write_wrong;
	file_ops = &ops;
	help_expect(save_number(e, folder, 2, 2), -EBADMSG, "do not match their checksum");
	file_ops = &file_ops_system;
	expect_back(folder, 0, 1);
	ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), 5);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_last_ones_stay, 0, 6);
	tcase_add_test(tcase, each_save_decides);
	tcase_add_loop_test(tcase, a_newest_one_that_is_broken, 0, 2);
	tcase_add_test(tcase, an_index_that_was_cut);
	tcase_add_loop_test(tcase, kept_ones_are_listed_from_the_newest, 0, 4);
	tcase_add_test(tcase, a_step_is_chosen);
	tcase_add_test(tcase, a_disk_that_lies);
}

int main(void)
{
	return suite_main("keep", add);
}
