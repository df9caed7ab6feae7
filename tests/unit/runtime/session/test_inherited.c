// SPDX-License-Identifier: MIT
/*
 * A program that runs another one while it uses the library hands it no descriptor: the other one
 * finds those of before alone, whatever is open: an engine, its event descriptor, buffers, a save
 * that is under way with its lock and shards, a checkpoint, tables for serving.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "descriptors.h"
#include "scratch_help.h"
#include "session_help.h"
#include "suite.h"

static char folder[32];
static int before; /* descriptors of a program that was run before anything was open */
static int seen_while_saving, asked, own_while_saving;

/* The descriptors that a program finds which is run now. */
static int count_inherited(void)
{
	int ends[2], status, count = 0;
	FILE *lines;
	pid_t pid;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		execl("/bin/ls", "ls", "/proc/self/fd", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	lines = fdopen(ends[0], "re");
	ck_assert_ptr_nonnull(lines);
	for (int c; (c = getc(lines)) != EOF;)
		count += c == '\n';
	fclose(lines);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	return count;
}

static int look_while_saving(void *arg, const struct embeng_progress *progress)
{
	(void)arg;
	(void)progress;
	asked++;
	own_while_saving = descriptors();
	seen_while_saving = count_inherited();
	return 0;
}

START_TEST(nothing_is_inherited)
{
	const struct shape shape = {.replicas = 1, .optimizer = embeng_sgd(0.5f)};
	struct embeng_save_options options = {.size = sizeof(options),
					      .progress = look_while_saving};
	struct embeng_checkpoint *checkpoint = NULL;
	struct embeng *e;
	int own, fd;

	scratch_folder_make(folder);
	before = count_inherited();
	own = descriptors();
	e = open_small(&shape);
	fd = embeng_fd(e);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_gt(descriptors(), own);
	ck_assert_int_eq(count_inherited(), before);
	own = descriptors();
	ck_assert_int_eq(embeng_save(e, folder, &options), 0);
	ck_assert_int_gt(asked, 0);
	/* The lock at least is open then. */
	ck_assert_int_gt(own_while_saving, own);
	ck_assert_int_eq(seen_while_saving, before);
	ck_assert_int_eq(embeng_checkpoint_open(folder, &checkpoint, NULL), 0);
	ck_assert_int_eq(count_inherited(), before);
	embeng_checkpoint_close(checkpoint);
	ck_assert_int_eq(embeng_restore(e, folder, NULL), 0);
	ck_assert_int_eq(count_inherited(), before);
	embeng_close(e);
	scratch_folder_remove(folder);
}
END_TEST

/* Each way in which the library opens a file. */
START_TEST(opened_files_are_not_inherited)
{
	static const int flags[] = {O_RDONLY, O_RDONLY | O_NOFOLLOW, O_RDWR | O_CREAT,
				    O_WRONLY | O_CREAT | O_TRUNC};
	char *path;
	int lock, fd;

	scratch_folder_make(folder);
	before = count_inherited();
	path = inside(folder, "file");
	ck_assert_int_eq(file_make(path, "text", 4), 0);
	fd = file_open(path, flags[_i]);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(count_inherited(), before);
	close(fd);
	fd = file_open(folder, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(file_lock_folder(folder, ".lock", &lock), 0);
	ck_assert_int_eq(count_inherited(), before);
	close(fd);
	file_unlock(lock);
	free(path);
	scratch_folder_remove(folder);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_test(tc, nothing_is_inherited);
	tcase_add_loop_test(tc, opened_files_are_not_inherited, 0, 4);
}

int main(void)
{
	return suite_main("inherited", add);
}
