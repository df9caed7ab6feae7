// SPDX-License-Identifier: MIT
/*
 * Memory that the emulator takes for the tables of a program is charged to the program's control
 * group: it is there while the program has the tables, and there are no tables beyond its limit.
 */
#include <embeng.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/support/suite.h"
#include "accel.h"

#define ROOT "/tmp/embeng-cgroup"
#define GROUP ROOT "/program"
#define CURRENT GROUP "/memory.current"
#define ROWS (1u << 19)
#define DIM 32
#define TABLE_MIB 64u /* ROWS rows of DIM floats */

static void setup(void)
{
	mkdir(ROOT, 0755);
	ck_assert_int_eq(mount("none", ROOT, "cgroup2", 0, NULL), 0);
	accel_write(ROOT "/cgroup.subtree_control", "+memory");
	ck_assert(!mkdir(GROUP, 0755) || errno == EEXIST);
}

static void teardown(void)
{
	rmdir(GROUP);
	umount(ROOT);
}

static int open_session(struct embeng **e)
{
	struct embeng_model *model = embeng_model_new();
	struct embeng_table_config table = {.size = sizeof(table),
					    .name = "items",
					    .vocabulary_size = ROWS,
					    .dim = DIM,
					    .optimizer = embeng_sgd(0.1f)};
	struct embeng_feature_config feature = {.size = sizeof(feature), .name = "seen"};
	struct embeng_error error = {.size = sizeof(error)};
	int ret;

	feature.table = embeng_model_add_table(model, &table);
	embeng_model_add_feature(model, &feature);
	ret = embeng_open(NULL, model, e, &error);
	if (ret < 0)
		fprintf(stderr, "# %s\n", error.text);
	return ret;
}

/* A program in the group. Exits with 0 if it got its table. */
static pid_t start_program(int go)
{
	struct embeng *e;
	pid_t child = fork();
	char word;
	int ret;

	ck_assert_int_ge(child, 0);
	if (child)
		return child;
	accel_write(GROUP "/cgroup.procs", "0");
	ret = open_session(&e);
	word = ret < 0 ? 'n' : 'y';
	if (write(go, &word, 1) != 1)
		_exit(2);
	if (ret < 0)
		_exit(1);
	pause();
	_exit(0);
}

static char run_program(pid_t *child)
{
	int said[2];
	char word = 0;

	ck_assert_int_eq(pipe(said), 0);
	*child = start_program(said[1]);
	close(said[1]);
	ck_assert_int_eq(read(said[0], &word, 1), 1);
	close(said[0]);
	return word;
}

START_TEST(test_tables_are_charged)
{
	pid_t child;

	accel_write(GROUP "/memory.max", "max");
	ck_assert_int_eq(run_program(&child), 'y');
	ck_assert_uint_ge(accel_number(CURRENT) >> 20, TABLE_MIB);
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	while (accel_number(CURRENT) >> 20 >= TABLE_MIB)
		usleep(10000);
}
END_TEST

START_TEST(test_tables_beyond_the_limit)
{
	int status;
	pid_t child;

	accel_write(GROUP "/memory.max", "48M");
	ck_assert_int_eq(run_program(&child), 'n');
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, test_tables_are_charged);
	tcase_add_test(tcase, test_tables_beyond_the_limit);
}

int main(void)
{
	return suite_main("cgroup", add);
}
