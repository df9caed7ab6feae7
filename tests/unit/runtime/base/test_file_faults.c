// SPDX-License-Identifier: MIT
/*
 * File operations that are interrupted, do a part, or fail: what is done again, what is undone, and
 * what is refused.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/error.h"
#include "file_help.h"
#include "suite.h"

static struct file_ops ops; /* the system's, but for what a test changes */

static void setup(void)
{
	scratch_folder_make(folder);
	ops = file_ops_system;
	file_ops = &ops;
}

/* -- interrupted calls ----------------------------------------------------- */

static int ends[2]; /* the ends of a pipe that the call waits for */
static volatile sig_atomic_t alarms;
static bool writes;

/* The first ones only interrupt; the third lets the call end. */
static void on_alarm(int signal)
{
	char bytes[4096];
	ssize_t n = 1;

	(void)signal;
	if (++alarms != 3)
		return;
	if (!writes)
		n = write(ends[1], "x", 1);
	while (writes && n > 0)
		n = read(ends[0], bytes, sizeof(bytes));
}

static void interrupt_often(bool while_writing)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	const struct itimerval often = {{0, 20000}, {0, 20000}};

	alarms = 0;
	writes = while_writing;
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(fcntl(ends[0], F_SETFL, while_writing ? O_NONBLOCK : 0), 0);
	ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
}

static void end_interrupts(void)
{
	ck_assert_int_eq(setitimer(ITIMER_REAL, &(struct itimerval){{0}, {0}}, NULL), 0);
	signal(SIGALRM, SIG_DFL);
	ck_assert_int_ge(alarms, 3);
	close(ends[0]);
	close(ends[1]);
}

START_TEST(an_interrupted_write_is_tried_again)
{
	char page[4096] = "page";
	int flags;

	interrupt_often(true);
	flags = fcntl(ends[1], F_GETFL);
	fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
	while (write(ends[1], page, sizeof(page)) > 0 || errno == EINTR)
		;
	fcntl(ends[1], F_SETFL, flags);
	alarms = 0;
	ck_assert_int_eq(file_ops->write(ends[1], page, 100), 100);
	alarms = 3;
	end_interrupts();
}
END_TEST

START_TEST(an_interrupted_read_is_tried_again)
{
	char byte = 0;

	interrupt_often(false);
	ck_assert_int_eq(file_ops->read(ends[0], &byte, 1), 1);
	ck_assert_int_eq(byte, 'x');
	end_interrupts();
}
END_TEST

/* -- parts ----------------------------------------------------------------- */

static int64_t write_two(int fd, const void *data, uint64_t bytes)
{
	return file_ops_system.write(fd, data, bytes < 2 ? bytes : 2);
}

static int64_t read_two(int fd, void *data, uint64_t bytes)
{
	return file_ops_system.read(fd, data, bytes < 2 ? bytes : 2);
}

static int64_t write_nothing(int fd, const void *data, uint64_t bytes)
{
	(void)fd;
	(void)data;
	(void)bytes;
	return 0;
}

static int64_t read_nothing(int fd, void *data, uint64_t bytes)
{
	(void)fd;
	(void)data;
	(void)bytes;
	return 0;
}

START_TEST(parts_are_put_together)
{
	ops.write = write_two;
	ops.read = read_two;
	ck_assert_int_eq(file_make(at("a"), "abcdefg", 7), 0);
	expect_text("a", "abcdefg");
	ops.write = write_nothing;
	ck_assert_int_eq(file_make(at("b"), "abc", 3), -EIO);
	ck_assert_int_ne(access(at("b"), F_OK), 0);
	ops.read = read_nothing;
	ck_assert_int_eq(file_read_whole(at("a"), 100, &(char *){0}, &(size_t){0}), -EBADMSG);
}
END_TEST

/* -- what fails is undone --------------------------------------------------- */

static int syncs, removals, sync_result;

static int note_sync(int fd)
{
	(void)fd;
	syncs++;
	return sync_result;
}

static int rename_synced(const char *from, const char *to)
{
	ck_assert_int_eq(syncs, 1);
	return file_ops_system.rename(from, to);
}

static int fail_rename(const char *from, const char *to)
{
	(void)from;
	(void)to;
	return -EXDEV;
}

static int note_removal(const char *path)
{
	removals++;
	return file_ops_system.remove(path);
}

START_TEST(a_file_is_synced_before_its_name)
{
	syncs = 0;
	sync_result = 0;
	ops.sync = note_sync;
	ops.rename = rename_synced;
	ck_assert_int_eq(file_replace(at("a"), "new", 3), 0);
	ck_assert_int_eq(syncs, 1);
	expect_text("a", "new");
}
END_TEST

START_TEST(what_fails_leaves_nothing)
{
	removals = 0;
	sync_result = -EIO;
	ops.sync = note_sync;
	ops.remove = note_removal;
	ck_assert_int_eq(file_make(at("a"), "new", 3), -EIO);
	ck_assert_int_eq(removals, 1);
	ck_assert_uint_eq(entries(folder), 0);
	ops.sync = file_ops_system.sync;
	ops.rename = fail_rename;
	ck_assert_int_eq(file_replace(at("a"), "new", 3), -EXDEV);
	ck_assert_uint_eq(entries(folder), 0);
	put("a", "old");
	ck_assert_int_eq(file_make(at("a"), "new", 3), -EEXIST);
	expect_text("a", "old");
}
END_TEST

/* A file system that cannot sync folders is none that failed to. */
START_TEST(a_folder_is_synced_where_that_can_be)
{
	ops.sync = note_sync;
	sync_result = -EINVAL;
	ck_assert_int_eq(file_sync_folder(folder), 0);
	sync_result = -EIO;
	ck_assert_int_eq(file_sync_folder(folder), -EIO);
}
END_TEST

/* -- what is read ----------------------------------------------------------- */

START_TEST(a_file_has_its_limit)
{
	const char *map = NULL;
	char *text = NULL;
	size_t length;

	put("a", "12345678");
	mallopt(M_PERTURB, 0x55); /* memory that is allocated has no zeros by itself */
	ck_assert_int_eq(file_read_whole(at("a"), 8, &text, &length), 0);
	ck_assert_uint_eq(length, 8);
	ck_assert_str_eq(text, "12345678");
	free(text);
	ck_assert_int_eq(file_read_whole(at("a"), 7, &text, &length), -EBADMSG);
	ck_assert_int_eq(file_map(at("a"), 7, &map), -EBADMSG);
	ck_assert_int_eq(file_map(at("a"), 9, &map), -EBADMSG);
	ck_assert_ptr_null(map);
	ck_assert_int_eq(file_map(at("a"), 8, &map), 0);
	ck_assert_mem_eq(map, "12345678", 8);
}
END_TEST

/* Nobody writes to the pipe: it is not waited for. */
START_TEST(only_files_are_files)
{
	char *text = NULL;
	size_t length;

	ck_assert_int_eq(mkfifo(at("pipe"), 0600), 0);
	ck_assert_int_eq(mkdir(at("folder"), 0700), 0);
	ck_assert_int_eq(file_read_whole(at("pipe"), 8, &text, &length), -EBADMSG);
	ck_assert_int_eq(file_read_whole(at("folder"), 1 << 20, &text, &length), -EBADMSG);
	ck_assert_ptr_null(text);
}
END_TEST

static const char *const parents[][2] = {
	{"/a/b", "/a/"}, {"/a/b//", "/a/"}, {"/a", "/"}, {"/", "/"},
	{"//", "/"},	 {"a", "."},	    {"a/", "."}, {"a/b", "a/"},
};

START_TEST(the_parent_of_a_path)
{
	char *parent = file_parent(parents[_i][0]);

	ck_assert_ptr_nonnull(parent);
	ck_assert_str_eq(parent, parents[_i][1]);
	free(parent);
}
END_TEST

/* -- locks ------------------------------------------------------------------ */

static int stale, opened, closed;

static int open_counted(const char *path, int flags)
{
	opened++;
	return file_ops_system.open(path, flags);
}

static void close_counted(int fd)
{
	closed++;
	file_ops_system.close(fd);
}

static int lock_stale(int fd)
{
	return stale-- > 0 ? -ESTALE : file_ops_system.lock(fd);
}

/* A lock file that somebody removes while it is opened: eight times, and then it is an error. */
START_TEST(a_stale_lock_is_opened_again)
{
	int lock;

	ops.open = open_counted;
	ops.close = close_counted;
	ops.lock = lock_stale;
	stale = 7;
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), 0);
	ck_assert_int_eq(opened, 8);
	ck_assert_int_eq(closed, 7);
	file_unlock(lock);
	opened = closed = 0;
	stale = 100;
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), -ESTALE);
	ck_assert_int_eq(opened, 8);
	ck_assert_int_eq(closed, 8);
}
END_TEST

START_TEST(a_removed_lock_is_stale)
{
	int fd = file_open(at("a"), O_RDWR | O_CREAT);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(at("a")), 0);
	ck_assert_int_eq(file_ops->lock(fd), -ESTALE);
	close(fd);
}
END_TEST

/* The number of the process alone, while it has the lock; a second one is told it. */
START_TEST(a_lock_names_its_process)
{
	struct embeng_error error = {.size = sizeof(error)};
	char want[64];
	int lock, second;

	put(".lock", "1234567890123456789\nand more\n");
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), 0);
	snprintf(want, sizeof(want), "%ld\n", (long)getpid());
	expect_text(".lock", want);
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &second), -EBUSY);
	embeng_last_error(&error);
	snprintf(want, sizeof(want), "by process %ld;", (long)getpid());
	ck_assert_ptr_nonnull(strstr(error.text, want));
	file_unlock(lock);
	expect_text(".lock", "");
}
END_TEST

static int open_without_right(const char *path, int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY ? -EACCES : file_ops_system.open(path, flags);
}

START_TEST(a_lock_of_another_user_is_no_link)
{
	int lock;

	put("victim", "mine");
	ck_assert_int_eq(symlink("victim", at(".lock")), 0);
	ops.open = open_without_right;
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), -ELOOP);
}
END_TEST

/* A process that may change any mode changes none of another user's file. */
START_TEST(the_mode_of_another_users_lock_stays)
{
	struct stat stat;
	int lock;

	put(".lock", "");
	ck_assert_int_eq(chmod(at(".lock"), 0600), 0);
	if (geteuid() || chown(at(".lock"), 65501, 65501)) {
		printf("a second user: none, this is not root\n");
		return;
	}
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), 0);
	ck_assert_int_eq(lstat(at(".lock"), &stat), 0);
	ck_assert_uint_eq(stat.st_mode & 07777, 0600);
	file_unlock(lock);
}
END_TEST

START_TEST(a_folder_is_forgotten_with_its_lock)
{
	char made[64];
	int lock;

	snprintf(made, sizeof(made), "%s/made", folder);
	ck_assert_int_eq(mkdir(made, 0700), 0);
	ck_assert_int_eq(file_lock_folder(made, ".lock", &lock), 0);
	file_forget_folder(made, ".lock");
	file_unlock(lock);
	ck_assert_uint_eq(entries(folder), 0);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_interrupted_write_is_tried_again);
	tcase_add_test(tc, an_interrupted_read_is_tried_again);
	tcase_add_test(tc, parts_are_put_together);
	tcase_add_test(tc, a_file_is_synced_before_its_name);
	tcase_add_test(tc, what_fails_leaves_nothing);
	tcase_add_test(tc, a_folder_is_synced_where_that_can_be);
	tcase_add_test(tc, a_file_has_its_limit);
	tcase_add_test(tc, only_files_are_files);
	tcase_add_loop_test(tc, the_parent_of_a_path, 0,
			    (int)(sizeof(parents) / sizeof(parents[0])));
	tcase_add_test(tc, a_stale_lock_is_opened_again);
	tcase_add_test(tc, a_removed_lock_is_stale);
	tcase_add_test(tc, a_lock_names_its_process);
	tcase_add_test(tc, a_lock_of_another_user_is_no_link);
	tcase_add_test(tc, the_mode_of_another_users_lock_stays);
	tcase_add_test(tc, a_folder_is_forgotten_with_its_lock);
}

int main(void)
{
	return suite_main("file_faults", add);
}
