// SPDX-License-Identifier: MIT
/*
 * Files of a recorded tree: links stay inside of it, nothing but regular files is read, reads are
 * bounded, and a record gives the same answers as the tree that it was made from.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/cli/system/function.h"
#include "scratch_help.h"
#include "suite.h"

static char *folder, *root;
static struct tree *tree;

static void make_parents(char *name)
{
	for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
}

/* Puts a file of @length bytes into the tree. */
static void put_bytes(const char *path, const void *data, size_t length)
{
	char name[512];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	make_parents(name);
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, length, f), length);
	fclose(f);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void put_link(const char *path, const char *target)
{
	char name[512];

	snprintf(name, sizeof(name), "%s%s", root, path);
	make_parents(name);
	ck_assert_int_eq(symlink(target, name), 0);
}

static void setup(void)
{
	ck_assert_int_eq(scratch_make(&folder), 0);
	root = inside(folder, "root");
	ck_assert_int_eq(mkdir(root, 0700), 0);
	ck_assert_int_eq(tree_open(root, &tree), 0);
}

static void teardown(void)
{
	tree_close(tree);
	free(root);
	scratch_remove(folder);
}

static void expect_line(struct tree *from, const char *path, const char *expected)
{
	char line[TREE_LINE];

	ck_assert_int_eq(tree_line(from, path, line, sizeof(line)), 0);
	ck_assert_str_eq(line, expected);
}

static void expect_text(struct tree *from, const char *path, const char *expected)
{
	char *text = tree_text(from, path, TREE_TEXT);

	ck_assert_ptr_nonnull(text);
	ck_assert_str_eq(text, expected);
	free(text);
}

START_TEST(reads_lines_texts_and_numbers)
{
	uint64_t number = 0;

	put("/sys/a", "one\ntwo\n");
	put("/sys/hex", "0x0eb0\n");
	put("/sys/decimal", "42");
	put("/sys/word", "4x\n");
	expect_line(tree, "/sys/a", "one");
	expect_text(tree, "/sys/a", "one\ntwo\n");
	ck_assert_int_eq(tree_number(tree, "/sys/hex", &number), 0);
	ck_assert_uint_eq(number, 0xeb0);
	ck_assert_int_eq(tree_number(tree, "/sys/decimal", &number), 0);
	ck_assert_uint_eq(number, 42);
	ck_assert_int_eq(tree_number(tree, "/sys/word", &number), -EINVAL);
	ck_assert_int_eq(tree_number(tree, "/sys/none", &number), -ENOENT);
	ck_assert_uint_eq(number, 42);
}
END_TEST

START_TEST(what_is_no_text_becomes_question_marks)
{
	put_bytes("/sys/binary", "a\0b\x1b[31m\xff\tz\n", 12);
	expect_line(tree, "/sys/binary", "a?b?[31m?\tz");
}
END_TEST

START_TEST(reads_are_bounded)
{
	char line[8];
	char large[4096];

	memset(large, 'x', sizeof(large));
	put_bytes("/sys/large", large, sizeof(large));
	ck_assert_int_eq(tree_line(tree, "/sys/large", line, sizeof(line)), -EFBIG);
	ck_assert_str_eq(line, "");
	ck_assert_int_eq(tree_bytes(tree, "/sys/large", line, 3), 3);
	ck_assert_ptr_null(tree_text(tree, "/sys/large", 4095));
	ck_assert_int_eq(errno, EFBIG);
	put("/sys/fits", "1234567");
	ck_assert_int_eq(tree_line(tree, "/sys/fits", line, sizeof(line)), -EFBIG);
	put("/sys/fits", "123456");
	ck_assert_int_eq(tree_line(tree, "/sys/fits", line, sizeof(line)), 0);
	ck_assert_str_eq(line, "123456");
}
END_TEST

START_TEST(links_stay_inside)
{
	char name[64];

	put("/etc/inside", "here\n");
	put_link("/sys/absolute", "/etc/inside");
	put_link("/sys/up", "../../../../../../etc/inside");
	put_link("/sys/outside", "/etc/passwd");
	put_link("/sys/loop", "loop");
	put_link("/sys/folder", "/etc");
	expect_line(tree, "/sys/absolute", "here");
	expect_line(tree, "/sys/up", "here");
	expect_line(tree, "/sys/folder/inside", "here");
	ck_assert_int_eq(tree_line(tree, "/sys/outside", name, sizeof(name)), -ENOENT);
	ck_assert_int_eq(tree_line(tree, "/sys/loop", name, sizeof(name)), -ELOOP);
	ck_assert_int_eq(tree_kind(tree, "/sys/loop"), TREE_NOTHING);
	ck_assert_int_eq(tree_link(tree, "/sys/absolute", name, sizeof(name)), 0);
	ck_assert_str_eq(name, "inside");
	put_link("/sys/lines", "a/b\nc\x1b");
	ck_assert_int_eq(tree_link(tree, "/sys/lines", name, sizeof(name)), 0);
	ck_assert_str_eq(name, "b?c?");
	ck_assert_int_eq(tree_link(tree, "/etc/inside", name, sizeof(name)), -EINVAL);
	ck_assert_int_eq(tree_link(tree, "/sys/none", name, sizeof(name)), -ENOENT);
	ck_assert_int_eq(tree_link(tree, "/sys/absolute", name, 6), -ENAMETOOLONG);
}
END_TEST

/* Opening a pipe for reading waits for somebody who writes. */
START_TEST(reads_regular_files_only)
{
	char line[TREE_LINE];
	char *pipe = inside(root, "pipe");

	ck_assert_int_eq(mkfifo(pipe, 0600), 0);
	free(pipe);
	put("/sys/file", "");
	ck_assert_int_eq(tree_line(tree, "/pipe", line, sizeof(line)), -EINVAL);
	ck_assert_int_eq(tree_kind(tree, "/pipe"), TREE_OTHER);
	ck_assert_int_eq(tree_line(tree, "/sys", line, sizeof(line)), -EINVAL);
	ck_assert_int_eq(tree_kind(tree, "/sys"), TREE_FOLDER);
	ck_assert_int_eq(tree_kind(tree, "/sys/file"), TREE_FILE);
	ck_assert_int_eq(tree_line(tree, "sys/file", line, sizeof(line)), -ENOENT);
}
END_TEST

START_TEST(lists_are_sorted_and_bounded)
{
	struct tree_names names;
	char path[64];

	for (int i = 0; i < TREE_LIST + 10; i++) {
		snprintf(path, sizeof(path), "/many/f%d", i);
		put(path, "");
	}
	put("/few/cpu10", "");
	put("/few/cpu9", "");
	put("/few/new\nline", "");
	ck_assert_int_eq(tree_list(tree, "/many", &names), 0);
	ck_assert_uint_le(names.count, TREE_LIST);
	ck_assert_uint_ge(names.count, TREE_LIST - 2);
	tree_names_free(&names);
	ck_assert_int_eq(tree_list(tree, "/few", &names), 0);
	ck_assert_uint_eq(names.count, 2);
	ck_assert_str_eq(names.list[0], "cpu9");
	ck_assert_str_eq(names.list[1], "cpu10");
	tree_names_free(&names);
	ck_assert_int_eq(tree_list(tree, "/few/cpu9", &names), -ENOTDIR);
	ck_assert_uint_eq(names.count, 0);
}
END_TEST

START_TEST(nodes_are_lines)
{
	struct tree_node node;

	put("/dev/accel/accel0", "node 0660 owner 0 group 106 number 261:3 opens EACCES\n");
	put("/dev/accel/accel1", "node 0666 owner 1 group 2 number 1:2 opens yes\n");
	put("/dev/accel/accel2", "node 0666 owner 1 group 2 number 1:2 opens EWHAT\n");
	ck_assert_int_eq(tree_node(tree, "/dev/accel/accel0", &node), 0);
	ck_assert_uint_eq(node.mode, 0660);
	ck_assert_uint_eq(node.group, 106);
	ck_assert_uint_eq(node.major, 261);
	ck_assert_uint_eq(node.minor, 3);
	ck_assert_int_eq(node.opens, -EACCES);
	ck_assert_int_eq(tree_node(tree, "/dev/accel/accel1", &node), 0);
	ck_assert_int_eq(node.opens, 0);
	ck_assert_int_eq(tree_node(tree, "/dev/accel/accel2", &node), -EINVAL);
	ck_assert_int_eq(tree_node(tree, "/dev/accel/accel3", &node), -ENOENT);
}
END_TEST

START_TEST(nodes_of_this_machine_are_opened)
{
	struct tree_node node;
	struct tree *here;

	ck_assert_int_eq(tree_open(NULL, &here), 0);
	ck_assert_int_eq(tree_node(here, "/dev/null", &node), 0);
	ck_assert_uint_eq(node.major, 1);
	ck_assert_uint_eq(node.minor, 3);
	ck_assert_int_eq(node.opens, 0);
	ck_assert_int_eq(tree_node(here, "/proc/self/limits", &node), -EINVAL);
	tree_close(here);
}
END_TEST

static void put_function(const char *address, const char *vendor, const char *device)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/vendor", address);
	put(path, vendor);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", address);
	put(path, device);
}

START_TEST(functions_of_the_vendor_are_found)
{
	struct functions found;

	ck_assert_int_eq(functions_find(tree, &found), 0);
	ck_assert_uint_eq(found.count, 0);
	put_function("0000:01:00.0", "0x8086\n", "0x0001\n");
	put_function("0000:02:00.0", "0x0eb0\n", "0x0007\n");
	put_function("10eb0:00:00.0", "0x0eb0\n", "0x0001\n");
	put_function("not an address", "0x0eb0\n", "0x0001\n");
	put_link("/sys/bus/pci/devices/10eb0:00:00.0/driver", "../../drivers/embeng");
	put("/sys/bus/pci/devices/10eb0:00:00.0/accel/accel7/dev", "261:7\n");
	ck_assert_int_eq(functions_find(tree, &found), 0);
	ck_assert_uint_eq(found.count, 2);
	ck_assert_str_eq(found.list[0].address, "0000:02:00.0");
	ck_assert_str_eq(found.list[0].driver, "");
	ck_assert_str_eq(found.list[0].node, "");
	ck_assert(!function_is_known(&found.list[0]));
	ck_assert_str_eq(found.list[1].driver, "embeng");
	ck_assert_str_eq(found.list[1].node, "accel7");
	ck_assert(function_is_known(&found.list[1]));
	functions_free(&found);
}
END_TEST

static void read_everything(struct tree *from)
{
	struct tree_names names;
	char name[64];

	expect_line(from, "/sys/a", "one");
	expect_text(from, "/sys/a", "one\ntwo\n");
	expect_line(from, "/sys/a", "one");
	ck_assert_int_eq(tree_link(from, "/sys/link", name, sizeof(name)), 0);
	ck_assert_str_eq(name, "target");
	ck_assert_int_eq(tree_list(from, "/sys/empty", &names), 0);
	ck_assert_uint_eq(names.count, 0);
	ck_assert_int_eq(tree_kind(from, "/sys/folder"), TREE_FOLDER);
	ck_assert_int_eq(tree_kind(from, "/sys/a"), TREE_FILE);
	ck_assert_int_eq(tree_kind(from, "/sys/folder/file"), TREE_FILE);
	ck_assert_int_eq(tree_line(from, "/sys/none", name, sizeof(name)), -ENOENT);
}

START_TEST(a_record_answers_as_its_tree)
{
	char *record = inside(folder, "record"), *gone;
	struct tree *again;

	put("/sys/a", "one\ntwo\n");
	put("/sys/empty/gone", "");
	put("/sys/folder/file", "");
	put_link("/sys/link", "../far/target");
	gone = inside(root, "sys/empty/gone");
	ck_assert_int_eq(unlink(gone), 0);
	free(gone);
	ck_assert_int_eq(tree_record(tree, record), 0);
	read_everything(tree);
	ck_assert_int_eq(tree_close(tree), 0);
	ck_assert_int_eq(tree_open(record, &again), 0);
	read_everything(again);
	tree_close(again);
	ck_assert_int_eq(tree_open(root, &tree), 0);
	ck_assert_int_eq(tree_record(tree, record), -ENOTEMPTY);
	free(record);
}
END_TEST

/* People who get a record learn nothing about who uses the machine. */
START_TEST(a_record_leaves_people_out)
{
	char *record = inside(folder, "record");
	const char *const mounts = "1 0 0:1 / / rw - ext4 /dev/mapper/alice-home rw\n"
				   "2 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
				   "3 1 0:3 / /dev rw - devtmpfs udev rw\n";

	put("/proc/cmdline", "root=UUID=1234 swiotlb=force quiet module_blacklist=embeng\n");
	put("/proc/self/mountinfo", mounts);
	put("/etc/group", "render:x:106:alice,bob\nusers:x:100:\n");
	put("/etc/modprobe.d/a.conf", "blacklist nouveau\nblacklist embeng\n");
	ck_assert_int_eq(tree_record(tree, record), 0);
	free(tree_text(tree, "/proc/cmdline", TREE_TEXT));
	free(tree_text(tree, "/proc/self/mountinfo", TREE_TEXT));
	free(tree_text(tree, "/etc/group", TREE_TEXT));
	expect_text(tree, "/etc/modprobe.d/a.conf", "blacklist nouveau\nblacklist embeng\n");
	ck_assert_int_eq(tree_close(tree), 0);
	ck_assert_int_eq(tree_open(record, &tree), 0);
	expect_text(tree, "/proc/cmdline", "swiotlb=force module_blacklist=embeng\n");
	expect_text(tree, "/proc/self/mountinfo", strchr(mounts, '\n') + 1);
	expect_text(tree, "/etc/group", "render:x:106:\nusers:x:100:\n");
	expect_text(tree, "/etc/modprobe.d/a.conf", "blacklist embeng\n");
	free(record);
}
END_TEST

START_TEST(roots_that_are_none)
{
	struct tree *none = NULL;

	ck_assert_int_eq(tree_open("/nowhere/at/all", &none), -ENOENT);
	ck_assert_int_eq(tree_open("/dev/null", &none), -ENOTDIR);
	ck_assert_ptr_null(none);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, reads_lines_texts_and_numbers);
	tcase_add_test(tcase, what_is_no_text_becomes_question_marks);
	tcase_add_test(tcase, reads_are_bounded);
	tcase_add_test(tcase, links_stay_inside);
	tcase_add_test(tcase, reads_regular_files_only);
	tcase_add_test(tcase, lists_are_sorted_and_bounded);
	tcase_add_test(tcase, nodes_are_lines);
	tcase_add_test(tcase, nodes_of_this_machine_are_opened);
	tcase_add_test(tcase, functions_of_the_vendor_are_found);
	tcase_add_test(tcase, a_record_answers_as_its_tree);
	tcase_add_test(tcase, a_record_leaves_people_out);
	tcase_add_test(tcase, roots_that_are_none);
}

int main(void)
{
	return suite_main("system_tree", add);
}
