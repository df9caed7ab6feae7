// SPDX-License-Identifier: MIT
/*
 * Each file operation fails in turn: the call says so, naming the file, the old checkpoint
 * is whole, no descriptor is left open; and the next save finds nothing in its way.
 */
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "checkpoint_edit.h"
#include "file_faults.h"
#include "suite.h"

static size_t descriptors(void)
{
	static char names[HELP_FILES][256];

	return folder_files("/proc/self/fd", names, HELP_FILES);
}

static struct embeng *open_two(void)
{
	const struct help_table tables[] = {{"t", 6, 2, embeng_adagrad(0.1f)},
					    {"u", 3, 2, embeng_sgd(0.1f)}};

	return help_open("soft:cores=1,memory=1M", tables, 2);
}

static uint32_t keep = 1;

static int save_salt(struct embeng *e, const char *folder, uint32_t salt)
{
	struct embeng_save_options o = {.size = sizeof(o),
					.shard_bytes = 64,
					.program_state = salt == 1 ? "1" : "2",
					.keep = keep};

	help_fill(e, salt);
	return embeng_save(e, folder, &o);
}

static uint32_t salt_of(const char *folder)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = help_checkpoint(folder);
	uint32_t salt;

	ck_assert_int_eq(embeng_checkpoint_info(c, &info), 0);
	salt = (uint32_t)atoi(info.program_state);
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_checkpoint(c, salt);
	embeng_checkpoint_close(c);
	return salt;
}

static const int codes[] = {-EIO, -ENOSPC, -EDQUOT};

/*
 * After the commit nothing is told but a warning; after the rename the new one is there. Indices of
 * earlier ones are read to clean the folder alone.
 */
static void check_failed_save(struct embeng *e, const char *folder, const char *named, int ret)
{
	bool committed = fault.hit == FAULT_REMOVE || fault.hit == FAULT_LIST;
	uint32_t salt;

	if (ret) {
		/* Bytes that cannot be read back have one code. */
		ck_assert_int_eq(ret, fault.hit == FAULT_COPY ? -EIO : fault.code);
		expect_text(named);
	} else {
		ck_assert(committed || keep > 1);
		ck_assert(committed || fault.hit == FAULT_OPEN || fault.hit == FAULT_SIZE ||
			  fault.hit == FAULT_READ);
	}
	disarm();
	salt = salt_of(folder);
	ck_assert_msg(salt == (ret ? 1u : 2u) || (ret && salt == 2 && fault.hit == FAULT_SYNC) ||
			      (ret && salt == 2 && fault.hit == FAULT_OPEN),
		      "operation of kind %d: the checkpoint is number %u", (int)fault.hit, salt);
	help_expect_ok(save_salt(e, folder, 1));
}

static void check_earlier(const char *folder)
{
	struct embeng_checkpoint *c = NULL;

	if (keep == 1)
		return;
	help_expect_ok(embeng_checkpoint_open_earlier(folder, 1, &c, NULL));
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	embeng_checkpoint_close(c);
}

START_TEST(each_operation_of_a_save_fails)
{
	static char names[HELP_FILES][256];
	struct embeng *e = open_two();
	char folder[HELP_PATH];
	size_t open_before;
	int ret, left;

	keep = 1 + (uint32_t)_i / 6;
	folder_new(folder);
	disarm();
	help_expect_ok(save_salt(e, folder, 1));
	help_expect_ok(save_salt(e, folder, 1));
	open_before = descriptors();
	for (left = 0;; left++) {
		arm(left, codes[_i % 3], _i % 6 >= 3);
		ret = save_salt(e, folder, 2);
		ck_assert_uint_eq(descriptors(), open_before);
		if (!fault.done)
			break;
		check_failed_save(e, folder, folder, ret);
		check_earlier(folder);
		ck_assert_uint_eq(folder_files(folder, names, HELP_FILES), keep == 1 ? 5 : 9);
	}
	help_expect_ok(ret);
	disarm();
	ck_assert_uint_eq(salt_of(folder), 2);
	printf("%d operations of a save failed with %s%s\n", left, strerror(-codes[_i % 3]),
	       _i % 6 >= 3 ? ", writes from there on" : "");
	ck_assert_int_gt(left, 30);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

/* Number 2 comes from another folder, over other hosts. */
START_TEST(each_operation_of_a_reshard_fails)
{
	const struct embeng_reshard_options o = {
		.size = sizeof(o), .hosts = 2, .shard_bytes = 64, .sharding = EMBENG_SHARDING_MOD};
	struct embeng *e = open_two();
	char folder[HELP_PATH], from[HELP_PATH];
	size_t open_before;
	int ret, left;

	folder_new(folder);
	folder_new(from);
	disarm();
	help_expect_ok(save_salt(e, from, 2));
	help_expect_ok(save_salt(e, folder, 1));
	open_before = descriptors();
	for (left = 0;; left++) {
		arm(left, -EIO, false);
		ret = embeng_checkpoint_reshard(from, folder, &o, NULL);
		ck_assert_uint_eq(descriptors(), open_before);
		if (!fault.done)
			break;
		check_failed_save(e, folder, "embeng-test-", ret);
	}
	help_expect_ok(ret);
	disarm();
	ck_assert_uint_eq(salt_of(folder), 2);
	ck_assert_int_gt(left, 60);
	embeng_close(e);
	folder_remove(folder);
	folder_remove(from);
}
END_TEST

START_TEST(each_operation_of_a_restore_fails)
{
	struct embeng *e = open_two();
	char folder[HELP_PATH];
	size_t open_before;
	int ret, left;

	folder_new(folder);
	disarm();
	help_expect_ok(save_salt(e, folder, 1));
	help_fill(e, 2);
	open_before = descriptors();
	for (left = 0;; left++) {
		arm(left, -EIO, false);
		ret = embeng_restore(e, folder, NULL);
		ck_assert_uint_eq(descriptors(), open_before);
		if (!fault.done)
			break;
		ck_assert_int_eq(ret, -EIO);
		expect_text(folder);
		help_expect_tables(e, 2);
	}
	help_expect_ok(ret);
	help_expect_tables(e, 1);
	ck_assert_int_gt(left, 20);
	disarm();
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

START_TEST(each_operation_of_reading_fails)
{
	struct embeng *e = open_two();
	struct embeng_checkpoint *c = NULL;
	char folder[HELP_PATH];
	size_t open_before;
	int ret, left;

	folder_new(folder);
	disarm();
	help_expect_ok(save_salt(e, folder, 1));
	embeng_close(e);
	open_before = descriptors();
	for (left = 0;; left++) {
		arm(left, -EIO, false);
		c = NULL;
		ret = embeng_checkpoint_open(folder, &c, NULL);
		ck_assert_int_eq(!ret, c != NULL);
		ret = ret ? ret : embeng_checkpoint_verify(c, NULL, NULL);
		embeng_checkpoint_close(c);
		ck_assert_uint_eq(descriptors(), open_before);
		if (!fault.done)
			break;
		ck_assert_int_eq(ret, -EIO);
		expect_text(folder);
	}
	help_expect_ok(ret);
	disarm();
	folder_remove(folder);
}
END_TEST

START_TEST(a_new_folder_may_fail)
{
	struct embeng *e = open_two();
	char parent[HELP_PATH], folder[HELP_PATH + 8], index[HELP_PATH + 32];
	int left, ret;

	folder_new(parent);
	snprintf(folder, sizeof(folder), "%s/new", parent);
	snprintf(index, sizeof(index), "%s/" INDEX_NAME, folder);
	for (left = 0;; left++) {
		arm(left, -ENOSPC, false);
		ret = save_salt(e, folder, 1);
		disarm();
		if (!fault.done)
			break;
		ck_assert(left > 2 || fault.hit == (left == 0	? FAULT_FOLDER
						    : left == 1 ? FAULT_OPEN
								: FAULT_SYNC));
		ck_assert(left > 2 || ret == -ENOSPC);
		if (ret)
			expect_text(parent);
		/*
		 * No folder stays that was not there, but with a lock that another may have, or
		 * where the index may have been renamed.
		 */
		if (ret && access(index, F_OK) && fault.hit != FAULT_LOCK &&
		    fault.hit != FAULT_RENAME)
			ck_assert_msg(access(folder, F_OK), "after operation %d, kind %d", left,
				      fault.hit);
		else
			folder_remove(folder);
	}
	help_expect_ok(ret);
	folder_remove(folder);
	ck_assert_int_gt(left, 10);
	help_expect_ok(save_salt(e, folder, 1));
	ck_assert_uint_eq(salt_of(folder), 1);
	snprintf(folder, sizeof(folder), "%s/new/", parent);
	help_expect_ok(save_salt(e, folder, 2));
	embeng_close(e);
	folder_remove(folder);
	folder_remove(parent);
}
END_TEST

/* A disk that is really full: a small file system of our own, else a limit of file sizes. */
static bool mount_small(const char *folder)
{
	return !mount("none", folder, "tmpfs", 0, "size=256k");
}

static void save_too_much(const char *folder, int code)
{
	const struct help_table small = {"t", 64, 4, embeng_sgd(0.1f)};
	const struct help_table large = {"t", 64000, 4, embeng_sgd(0.1f)};
	struct embeng *e = help_open(SMALL, &small, 1), *f = help_open(SMALL, &large, 1);
	struct embeng_save_options o = {.size = sizeof(o), .program_state = "1"};

	help_fill(e, 1);
	help_expect_ok(embeng_save(e, folder, &o));
	for (int i = 0; i < 3; i++) {
		help_expect(embeng_save(f, folder, NULL), code, ".safetensors: cannot be written");
		ck_assert_uint_eq(salt_of(folder), 1);
	}
	/* The files of the failed saves are gone, so there is room again. */
	help_expect_ok(embeng_save(e, folder, &o));
	embeng_close(e);
	embeng_close(f);
}

START_TEST(a_full_disk)
{
	const struct rlimit limit = {.rlim_cur = 256 << 10, .rlim_max = RLIM_INFINITY};
	char folder[HELP_PATH];
	bool mounted;

	folder_new(folder);
	disarm();
	mounted = mount_small(folder);
	printf("a full disk: %s\n", mounted ? "a tmpfs of 256 KiB" : "RLIMIT_FSIZE, no mount here");
	if (mounted) {
		save_too_much(folder, -ENOSPC);
		ck_assert_int_eq(umount(folder), 0);
	} else {
		signal(SIGXFSZ, SIG_IGN);
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		save_too_much(folder, -EFBIG);
	}
	folder_remove(folder);
}
END_TEST

/* The limit is there for everybody, so it is tried also where a mount works. */
START_TEST(a_limit_of_file_sizes)
{
	const struct rlimit limit = {.rlim_cur = 256 << 10, .rlim_max = RLIM_INFINITY};
	char folder[HELP_PATH];

	folder_new(folder);
	disarm();
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	save_too_much(folder, -EFBIG);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, each_operation_of_a_save_fails, 0, 12);
	tcase_add_test(tcase, each_operation_of_a_reshard_fails);
	tcase_add_test(tcase, each_operation_of_a_restore_fails);
	tcase_add_test(tcase, each_operation_of_reading_fails);
	tcase_add_test(tcase, a_new_folder_may_fail);
	tcase_add_test(tcase, a_full_disk);
	tcase_add_test(tcase, a_limit_of_file_sizes);
}

int main(void)
{
	return suite_main("checkpoint faults", add);
}
