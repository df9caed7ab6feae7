// SPDX-License-Identifier: MIT
/* Files that are made or replaced in a folder that other users may write to. */
#define _GNU_SOURCE /* setgroups, setresuid */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file_help.h"
#include "suite.h"

static void setup(void)
{
	scratch_folder_make(folder);
}

static mode_t mode_of(const char *name)
{
	struct stat stat;

	ck_assert_int_eq(lstat(at(name), &stat), 0);
	return stat.st_mode & 07777;
}

static const mode_t masks[] = {0, 022, 027, 077};

/* The mode is the umask's, and nothing is left beside the file. */
START_TEST(test_replace)
{
	umask(masks[_i]);
	put("a", "old");
	ck_assert_int_eq(file_replace(at("a"), "new", 3), 0);
	expect_text("a", "new");
	ck_assert_uint_eq(mode_of("a"), 0666 & ~masks[_i]);
	ck_assert_uint_eq(entries(folder), 1);
}
END_TEST

/* A name that somebody guessed leads nowhere, and neither does the file's own. */
START_TEST(test_replace_follows_no_link)
{
	put("victim", "mine");
	ck_assert_int_eq(symlink("victim", at("a.tmp")), 0);
	ck_assert_int_eq(symlink("victim", at("a")), 0);
	ck_assert_int_eq(file_replace(at("a"), "new", 3), 0);
	expect_text("a", "new");
	expect_text("victim", "mine");
}
END_TEST

START_TEST(test_replace_that_fails_leaves_the_old)
{
	ck_assert_int_eq(mkdir(at("a"), 0777), 0);
	ck_assert_int_lt(file_replace(at("a"), "new", 3), 0);
	ck_assert_uint_eq(entries(folder), 1);
	ck_assert_int_eq(file_replace(at("none/a"), "new", 3), -ENOENT);
}
END_TEST

START_TEST(test_lock_follows_no_link)
{
	int lock;

	ck_assert_int_eq(symlink("victim", at(".lock")), 0);
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), -ELOOP);
	ck_assert_int_ne(access(at("victim"), F_OK), 0);
}
END_TEST

static int open_of_another_user(const char *path, int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY ? -EACCES : file_ops_system.open(path, flags);
}

/* A second user may read the first one's lock file and not write it: that is enough to lock. */
START_TEST(test_lock_of_two_users)
{
	struct file_ops another = file_ops_system;
	int lock, second;

	umask(masks[_i]);
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), 0);
	ck_assert_uint_eq(mode_of(".lock"), (0666 & ~masks[_i]) | 0444);
	another.open = open_of_another_user;
	file_ops = &another;
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &second), -EBUSY);
	close(lock);
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &second), 0);
	file_ops = &file_ops_system;
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), -EBUSY);
	close(second);
}
END_TEST

/* The lock is let go of again. */
static int lock_as(uid_t user, mode_t mask)
{
	int lock, status;
	pid_t pid = fork();

	if (!pid) {
		umask(mask);
		_exit(setgroups(0, NULL) || setresgid(user, user, user) ||
		      setresuid(user, user, user) || file_lock_folder(folder, ".lock", &lock));
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

/* With real users where the test may become them, in a folder of one's own and in one like /tmp. */
START_TEST(test_lock_of_real_users)
{
	if (geteuid()) {
		printf("a second user: none, this is not root\n");
		return;
	}
	ck_assert_int_eq(chmod(folder, _i & 1 ? 01777 : 0777), 0);
	ck_assert_int_eq(lock_as(65501, masks[_i / 2]), 0);
	ck_assert_uint_eq(mode_of(".lock"), (0666 & ~masks[_i / 2]) | 0444);
	ck_assert_int_eq(lock_as(65502, masks[_i / 2]), 0);
	/* The first one took the right to read away himself: nobody else gives it back. */
	ck_assert_int_eq(chmod(at(".lock"), 0600), 0);
	ck_assert_int_ne(lock_as(65502, 0), 0);
	ck_assert_uint_eq(mode_of(".lock"), 0600);
}
END_TEST

START_TEST(test_nothing_is_inherited)
{
	static const int flags[] = {O_RDONLY, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC};
	int fd, lock;

	put("a", "text");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		fd = file_open(at("a"), flags[i]);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
		close(fd);
	}
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), 0);
	ck_assert_int_eq(fcntl(lock, F_GETFD), FD_CLOEXEC);
	close(lock);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, test_replace, 0, 4);
	tcase_add_test(tc, test_replace_follows_no_link);
	tcase_add_test(tc, test_replace_that_fails_leaves_the_old);
	tcase_add_test(tc, test_lock_follows_no_link);
	tcase_add_loop_test(tc, test_lock_of_two_users, 0, 4);
	tcase_add_loop_test(tc, test_lock_of_real_users, 0, 8);
	tcase_add_test(tc, test_nothing_is_inherited);
}

int main(void)
{
	return suite_main("file", add);
}
