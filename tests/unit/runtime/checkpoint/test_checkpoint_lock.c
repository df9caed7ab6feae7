// SPDX-License-Identifier: MIT
/*
 * The lock of a folder: a second saver is told of the first; the lock ends with its process or with
 * its save, even if a child has inherited it; and a file that was removed locks nothing.
 */
#include <sys/wait.h>

#include "checkpoint_help.h"

static struct embeng *open_one_table(void)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)}};

	return help_open("soft:cores=1,memory=1M", tables, 1);
}

/* The saver of another process, whose number the second one is told. */
START_TEST(the_second_saver_is_told_of_the_first)
{
	struct embeng *e = open_one_table();
	char folder[HELP_PATH], pid[24], byte = 0;
	int lock, up[2], down[2], status;
	pid_t child;

	folder_new(folder);
	ck_assert_int_eq(pipe(up), 0);
	ck_assert_int_eq(pipe(down), 0);
	child = fork();
	if (!child) {
		if (file_lock_folder(folder, ".embeng.lock", &lock) || write(up[1], "x", 1) != 1 ||
		    read(down[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	ck_assert_int_eq(read(up[0], &byte, 1), 1);
	snprintf(pid, sizeof(pid), "by process %ld;", (long)child);
	help_expect(embeng_save(e, folder, NULL), -EBUSY, pid);
	expect_text(folder);
	/* Killed, it holds no lock any more. */
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, NULL));
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* A process that was forked in the middle of a save does not keep the folder locked. */
START_TEST(a_child_does_not_inherit_the_lock)
{
	char folder[HELP_PATH], byte;
	int lock, again, down[2], status;
	pid_t child;

	folder_new(folder);
	ck_assert_int_eq(pipe(down), 0);
	help_expect_ok(file_lock_folder(folder, ".embeng.lock", &lock));
	child = fork();
	if (!child) {
		close(down[1]);
		_exit(read(down[0], &byte, 1) != 0);
	}
	file_unlock(lock);
	help_expect_ok(file_lock_folder(folder, ".embeng.lock", &again));
	file_unlock(again);
	close(down[0]);
	close(down[1]);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	folder_remove(folder);
}
END_TEST

static struct file_ops racing;
static const char *removed;

/* A save that failed removes its folder's lock between the opening and the locking. */
static int remove_and_lock(int fd)
{
	if (removed)
		ck_assert_int_eq(unlink(removed), 0);
	removed = NULL;
	return file_ops_system.lock(fd);
}

/* Else the next saver would make another file and lock that, too. */
START_TEST(a_lock_that_was_removed_is_none)
{
	char folder[HELP_PATH], path[HELP_PATH + 16];
	int lock, again;

	folder_new(folder);
	snprintf(path, sizeof(path), "%s/.embeng.lock", folder);
	racing = file_ops_system;
	racing.lock = remove_and_lock;
	file_ops = &racing;
	removed = path;
	help_expect_ok(file_lock_folder(folder, ".embeng.lock", &lock));
	file_ops = &file_ops_system;
	ck_assert_ptr_null(removed);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(file_lock_folder(folder, ".embeng.lock", &again), -EBUSY);
	file_unlock(lock);
	folder_remove(folder);
}
END_TEST

RUN_SUITE("checkpoint lock", the_second_saver_is_told_of_the_first,
	  a_child_does_not_inherit_the_lock, a_lock_that_was_removed_is_none)
