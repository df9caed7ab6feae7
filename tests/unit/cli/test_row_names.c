// SPDX-License-Identifier: MIT
/* Names of the rows of a checkpoint: written, read back, damaged, and names that are near. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "embeng.h"
#include "runtime/cli/frame/scratch.h"
#include "runtime/cli/lookup/row_names.h"
#include "scratch_help.h"
#include "suite.h"

static char *folder, *file, error[ROW_NAMES_ERROR];
static char *const names[] = {"bread", "milk and more", "\xc3\xa4pfel", "7", "\xff latin"};

#define COUNT (sizeof(names) / sizeof(names[0]))

static void setup(void)
{
	ck_assert_int_eq(scratch_make(&folder), 0);
	file = inside(folder, ROW_NAMES_FILE);
}

static void teardown(void)
{
	free(file);
	scratch_remove(folder);
}

static struct embeng_checkpoint *save_with_state(const char *state)
{
	struct embeng_table_config table = {
		.size = sizeof(table), .name = "t", .vocabulary_size = COUNT, .dim = 2};
	struct embeng_save_options options = {.size = sizeof(options), .program_state = state};
	struct embeng_model *model = embeng_model_new();
	struct embeng_checkpoint *c;
	struct embeng *e;

	ck_assert_int_eq(embeng_model_add_table(model, &table), 0);
	ck_assert_int_eq(embeng_open("soft:cores=1", model, &e, NULL), 0);
	ck_assert_int_eq(embeng_save(e, folder, &options), 0);
	embeng_close(e);
	embeng_model_free(model);
	ck_assert_int_eq(embeng_checkpoint_open(folder, &c, NULL), 0);
	return c;
}

/* A checkpoint that says it has the first @count names. */
static struct embeng_checkpoint *save_named(size_t count)
{
	struct row_names_mark mark = row_names_mark(names, count);
	struct embeng_checkpoint *c;
	struct json_writer w;
	size_t length;
	char *state;

	json_write_begin(&w, JSON_COMPACT);
	json_write_object(&w, NULL);
	row_names_mark_write(&w, &mark);
	json_write_close(&w);
	ck_assert_int_eq(json_write_end(&w, &state, &length), 0);
	c = save_with_state(state);
	free(state);
	return c;
}

static void write_file(const char *text, size_t length)
{
	FILE *out = fopen(file, "w");

	ck_assert_ptr_nonnull(out);
	ck_assert_uint_eq(fwrite(text, 1, length, out), length);
	fclose(out);
}

/* The checkpoint has the first of the names in the file. */
START_TEST(names_come_back)
{
	struct embeng_checkpoint *c = save_named((size_t)_i);
	struct row_names read;

	ck_assert_int_eq(row_names_save(folder, names, COUNT), 0);
	ck_assert_msg(!row_names_load(folder, c, &read, error), "%s", error);
	ck_assert_uint_eq(read.count, (size_t)_i);
	for (int k = 0; k < _i; k++) {
		ck_assert_str_eq(read.text[k], names[k]);
		ck_assert_int_eq(row_names_find(&read, names[k]), k);
	}
	ck_assert_int_eq(row_names_find(&read, "Bread"), -ENOENT);
	row_names_free(&read);
	embeng_checkpoint_close(c);
}
END_TEST

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *text;
	size_t length;
} damaged[] = {
	{BYTES("")},
	{BYTES("bread\n")},
	{BYTES("bread\nmilk and more")},
	{BYTES("bread\nmilk and mole\n")},
	{BYTES("milk and more\nbread\n")},
	{BYTES("bread\n\nmilk and more\n")},
	{BYTES("bread\nmilk\0and more\n")},
	{BYTES("bread\r\nmilk and more\r\n")},
};

START_TEST(damage_is_found)
{
	struct embeng_checkpoint *c = save_named(2);
	struct row_names read;

	write_file(damaged[_i].text, damaged[_i].length);
	ck_assert_int_eq(row_names_load(folder, c, &read, error), -EBADMSG);
	ck_assert_msg(strstr(error, ROW_NAMES_FILE ": it does not have the names"), "%s", error);
	ck_assert_uint_eq(read.count, 0);
	ck_assert_ptr_null(read.text);
	embeng_checkpoint_close(c);
}
END_TEST

START_TEST(a_missing_file_is_named)
{
	struct embeng_checkpoint *c = save_named(2);
	struct row_names read;

	ck_assert_int_eq(row_names_load(folder, c, &read, error), -EBADMSG);
	ck_assert_msg(strstr(error, ROW_NAMES_FILE ": No such file"), "%s", error);
	ck_assert_int_eq(mkdir(file, 0777), 0);
	ck_assert_int_lt(row_names_load(folder, c, &read, error), 0);
	ck_assert_ptr_null(read.text);
	embeng_checkpoint_close(c);
}
END_TEST

/* States of other programs, and of versions that saved no names. */
START_TEST(no_names_are_told)
{
	static const char *const states[] = {
		NULL,
		"step 12",
		"{}",
		"[1]",
		"{\"names\":null}",
		"{\"names\":7}",
		"{\"names\":{\"file\":\"../x\",\"count\":1,\"hash\":\"0123456789abcdef\"}}",
		"{\"names\":{\"file\":\"embeng-items.names\",\"count\":-1,"
		"\"hash\":\"0123456789abcdef\"}}",
		"{\"names\":{\"file\":\"embeng-items.names\",\"count\":1,\"hash\":\"0123\"}}",
		"{\"names\":{\"file\":\"embeng-items.names\",\"count\":0,"
		"\"hash\":\"0123456789abcdef\"}}",
	};
	struct row_names read;

	for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++) {
		struct embeng_checkpoint *c = save_with_state(states[k]);

		ck_assert_int_eq(row_names_load(folder, c, &read, error), -ENOENT);
		ck_assert_msg(strstr(error, "does not name its rows"), "%s", error);
		embeng_checkpoint_close(c);
	}
}
END_TEST

/* A count that no file can have is no reason to ask for memory. */
START_TEST(a_count_beyond_the_file)
{
	struct embeng_checkpoint *c = save_with_state(
		"{\"names\":{\"file\":\"embeng-items.names\",\"count\":9223372036854775807,"
		"\"hash\":\"0123456789abcdef\"}}");
	struct row_names read;

	ck_assert_int_eq(row_names_save(folder, names, COUNT), 0);
	ck_assert_int_eq(row_names_load(folder, c, &read, error), -EBADMSG);
	embeng_checkpoint_close(c);
}
END_TEST

START_TEST(names_are_copied)
{
	struct embeng_checkpoint *c = save_named(3);
	char *other = inside(folder, "other");
	struct row_names read;

	ck_assert_int_eq(mkdir(other, 0777), 0);
	ck_assert_int_eq(row_names_copy(folder, c, other, error), -EBADMSG);
	ck_assert_int_eq(row_names_save(folder, names, COUNT), 0);
	ck_assert_int_eq(row_names_copy(folder, c, other, error), 0);
	ck_assert_int_eq(row_names_load(other, c, &read, error), 0);
	ck_assert_str_eq(read.text[2], names[2]);
	row_names_free(&read);
	free(other);
	embeng_checkpoint_close(c);
}
END_TEST

static char *const shop[] = {"hammer", "Hammer time", "nail", "nails", "saw", "whole milk", "12"};

static const struct {
	const char *name, *near;
} meant[] = {
	{"hamer", "Near it: hammer"},
	{"HAMMER", "Near it: hammer, Hammer time"},
	{"nial", "Near it: nail"},
	{"milk", "Near it: whole milk"},
	{"13", "Near it: 12"},
	{"zzz", NULL},
	{"", NULL},
};

START_TEST(names_that_are_near)
{
	char near[ROW_NAMES_NEAR];
	const char *found = row_names_near(shop, 7, meant[_i].name, near);

	if (meant[_i].near)
		ck_assert_str_eq(found, meant[_i].near);
	else
		ck_assert_ptr_null(found);
}
END_TEST

/* Long names are cut, and nothing is written beyond the hint. */
START_TEST(long_names)
{
	char name[1000], near[ROW_NAMES_NEAR];
	char *const text[] = {name, name, name, name};

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ck_assert_ptr_eq(row_names_near(text, 4, name, near), near);
	ck_assert_uint_eq(strlen(near), strlen("Near it:") + 3 * 51 + 2);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, names_come_back, 1, COUNT + 1);
	tcase_add_loop_test(tcase, damage_is_found, 0, sizeof(damaged) / sizeof(damaged[0]));
	tcase_add_test(tcase, a_missing_file_is_named);
	tcase_add_test(tcase, no_names_are_told);
	tcase_add_test(tcase, a_count_beyond_the_file);
	tcase_add_test(tcase, names_are_copied);
	tcase_add_loop_test(tcase, names_that_are_near, 0, sizeof(meant) / sizeof(meant[0]));
	tcase_add_test(tcase, long_names);
}

int main(void)
{
	return suite_main("row_names", add);
}
