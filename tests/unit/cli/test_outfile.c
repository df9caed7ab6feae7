// SPDX-License-Identifier: MIT
/* Output files appear whole or not at all, and folders that a failed verb has made are removed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/frame/outfile.h"
#include "scratch_help.h"
#include "suite.h"

static char *folder, *path;

static void setup(void)
{
	ck_assert_int_eq(scratch_make(&folder), 0);
	path = inside(folder, "file");
}

static void teardown(void)
{
	free(path);
	scratch_remove(folder);
}

static void expect_content(const char *name, const char *expected)
{
	char text[64] = "";
	FILE *in = fopen(name, "r");

	ck_assert_ptr_nonnull(in);
	ck_assert_uint_eq(fread(text, 1, sizeof(text) - 1, in), strlen(expected));
	ck_assert_str_eq(text, expected);
	fclose(in);
}

static void put(const char *name, const char *text)
{
	struct outfile f;

	ck_assert_int_eq(outfile_open(&f, name), 0);
	fputs(text, f.stream);
	ck_assert_int_eq(outfile_commit(&f), 0);
}

START_TEST(appears_at_commit)
{
	struct outfile f;

	ck_assert_int_eq(outfile_open(&f, path), 0);
	fputs("new", f.stream);
	ck_assert_int_eq(access(path, F_OK), -1);
	ck_assert_int_eq(outfile_commit(&f), 0);
	expect_content(path, "new");
	ck_assert_uint_eq(entries(folder), 1);
}
END_TEST

START_TEST(an_abort_leaves_the_old_file)
{
	struct outfile f;

	put(path, "old");
	ck_assert_int_eq(outfile_open(&f, path), 0);
	fputs("half", f.stream);
	fflush(f.stream);
	outfile_abort(&f);
	expect_content(path, "old");
	ck_assert_uint_eq(entries(folder), 1);
	outfile_abort(&f);
}
END_TEST

START_TEST(replaces_the_old_file)
{
	put(path, "old");
	put(path, "new");
	expect_content(path, "new");
	ck_assert_uint_eq(entries(folder), 1);
}
END_TEST

START_TEST(others_may_read_as_the_mask_says)
{
	mode_t mask = umask(027);
	struct stat is;

	put(path, "x");
	umask(mask);
	ck_assert_int_eq(stat(path, &is), 0);
	ck_assert_uint_eq(is.st_mode & 0777, 0640);
}
END_TEST

START_TEST(a_link_stays_a_link)
{
	char *link = inside(folder, "link");
	struct stat is;

	put(path, "old");
	ck_assert_int_eq(symlink("file", link), 0);
	put(link, "new");
	expect_content(path, "new");
	ck_assert_int_eq(lstat(link, &is), 0);
	ck_assert(S_ISLNK(is.st_mode));
	free(link);
}
END_TEST

START_TEST(a_device_is_written_in_place)
{
	struct outfile f;

	ck_assert_int_eq(outfile_open(&f, "/dev/full"), 0);
	ck_assert_ptr_null(f.aside);
	fputs("x", f.stream);
	ck_assert_int_eq(outfile_commit(&f), -ENOSPC);
	ck_assert_int_eq(access("/dev/full", W_OK), 0);
}
END_TEST

/* From here on the disk is full. */
static void fill_up(const struct outfile *f)
{
	int full = open("/dev/full", O_WRONLY);

	ck_assert_int_ge(dup2(full, f->sink.fd), 0);
	close(full);
}

/* Stdio itself forgets why, when the buffer goes out in the middle. */
START_TEST(tells_why_an_early_write_failed)
{
	struct outfile f;

	ck_assert_int_eq(outfile_open(&f, path), 0);
	fill_up(&f);
	for (int k = 0; k < 20000; k++)
		fputc('x', f.stream);
	fflush(f.stream);
	errno = 0;
	ck_assert_int_eq(outfile_commit(&f), -ENOSPC);
	ck_assert_uint_eq(entries(folder), 0);
	ck_assert_int_eq(outfile_open(&f, "/dev/full"), 0);
	fputs("x", f.stream);
	fflush(f.stream);
	ck_assert_int_eq(outfile_commit(&f), -ENOSPC);
}
END_TEST

/* The disk is full when the buffer goes out: nothing of it is left. */
START_TEST(a_failed_commit_leaves_nothing)
{
	struct outfile f;

	put(path, "old");
	ck_assert_int_eq(outfile_open(&f, path), 0);
	fputs("new", f.stream);
	fill_up(&f);
	ck_assert_int_eq(outfile_commit(&f), -ENOSPC);
	expect_content(path, "old");
	ck_assert_uint_eq(entries(folder), 1);
}
END_TEST

START_TEST(stdout_is_not_closed)
{
	struct outfile f;

	ck_assert_int_eq(outfile_open(&f, NULL), 0);
	ck_assert_ptr_eq(f.stream, stdout);
	ck_assert_int_eq(outfile_commit(&f), 0);
	ck_assert_int_eq(outfile_open(&f, "-"), 0);
	outfile_abort(&f);
	ck_assert_int_ge(printf("#\n"), 2);
}
END_TEST

START_TEST(where_no_file_can_be)
{
	char *below = inside(path, "below");
	struct outfile f;

	ck_assert_int_eq(outfile_open(&f, below), -ENOENT);
	put(path, "a file");
	ck_assert_int_eq(outfile_open(&f, below), -ENOTDIR);
	ck_assert_int_eq(outfile_open(&f, folder), -EISDIR);
	free(below);
}
END_TEST

START_TEST(a_scratch_folder_goes_with_all_in_it)
{
	char *scratch, *deep, *file;

	setenv("TMPDIR", folder, 1);
	ck_assert_int_eq(scratch_make(&scratch), 0);
	ck_assert_int_eq(strncmp(scratch, folder, strlen(folder)), 0);
	deep = inside(scratch, "deep");
	file = inside(deep, "file");
	ck_assert_int_eq(mkdir(deep, 0700), 0);
	put(file, "x");
	scratch_remove(scratch);
	ck_assert_uint_eq(entries(folder), 0);
	setenv("TMPDIR", path, 1);
	ck_assert_int_eq(scratch_make(&scratch), -ENOENT);
	unsetenv("TMPDIR");
	scratch_remove(NULL);
	free(deep);
	free(file);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, appears_at_commit);
	tcase_add_test(tcase, an_abort_leaves_the_old_file);
	tcase_add_test(tcase, replaces_the_old_file);
	tcase_add_test(tcase, others_may_read_as_the_mask_says);
	tcase_add_test(tcase, a_link_stays_a_link);
	tcase_add_test(tcase, a_device_is_written_in_place);
	tcase_add_test(tcase, tells_why_an_early_write_failed);
	tcase_add_test(tcase, a_failed_commit_leaves_nothing);
	tcase_add_test(tcase, stdout_is_not_closed);
	tcase_add_test(tcase, where_no_file_can_be);
	tcase_add_test(tcase, a_scratch_folder_goes_with_all_in_it);
}

int main(void)
{
	return suite_main("outfile", add);
}
