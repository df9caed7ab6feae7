// SPDX-License-Identifier: MIT
/* The options that say how a file is written. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "runtime/examples/item2vec/format.h"
#include "suite.h"

static char error[FORMAT_ERROR];

START_TEST(kinds)
{
	struct format f = {0};

	ck_assert_int_eq(format_read_kind(&f, "baskets", error), 0);
	ck_assert_int_eq(f.kind, FORMAT_BASKETS);
	ck_assert_int_eq(format_read_kind(&f, "ratings", error), 0);
	ck_assert_int_eq(f.kind, FORMAT_RATINGS);
	ck_assert_str_eq(f.separator, "");
	ck_assert_int_eq(format_read_kind(&f, "csv", error), 0);
	ck_assert_str_eq(f.separator, ",");
	ck_assert_int_eq(format_read_kind(&f, "xml", error), -EINVAL);
	ck_assert_ptr_nonnull(strstr(error, "--format takes baskets, ratings or csv"));
}
END_TEST

static const struct {
	const char *option, *separator;
} separators[] = {
	{"tab", "\t"},	{"\t", "\t"},
	{"\\t", "\t"},	{"comma", ","},
	{",", ","},	{"semicolon", ";"},
	{";", ";"},	{"::", "::"},
	{"|", "|"},	{"blank", " "},
	{"space", " "}, {" ", " "},
	{"#!#", "#!#"}, {"||||||||", "||||||||"},
};

START_TEST(separators_by_name_and_text)
{
	struct format f = {0};

	ck_assert_int_eq(format_read_separator(&f, separators[_i].option, error), 0);
	ck_assert_str_eq(f.separator, separators[_i].separator);
}
END_TEST

START_TEST(what_is_no_separator)
{
	static const char *const wrong[] = {"",	  "x",	 "1",  ".",	    "-",    "\"", "'",
					    "\n", "::1", "  ", "|||||||||", "tabs", ";\n"};
	struct format f = {.separator = "?"};

	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		ck_assert_msg(format_read_separator(&f, wrong[k], error) == -EINVAL, "'%s'",
			      wrong[k]);
		ck_assert_ptr_nonnull(strstr(error, "--separator takes tab, comma"));
		ck_assert_str_eq(f.separator, "?");
	}
}
END_TEST

START_TEST(columns_by_place_and_name)
{
	struct format f = {0};

	ck_assert_int_eq(format_read_columns(&f, "timestamp,-,item,user", error), 0);
	ck_assert_int_eq(f.columns.by, COLUMNS_BY_PLACE);
	ck_assert_uint_eq(f.columns.count, 4);
	ck_assert_uint_eq(f.columns.places[COLUMN_USER], 3);
	ck_assert_uint_eq(f.columns.places[COLUMN_ITEM], 2);
	ck_assert_uint_eq(f.columns.places[COLUMN_RATING], SIZE_MAX);
	ck_assert_uint_eq(f.columns.places[COLUMN_TIME], 0);
	ck_assert_int_eq(format_read_columns(&f, "user=who is it,item=book", error), 0);
	ck_assert_int_eq(f.columns.by, COLUMNS_BY_NAME);
	ck_assert_uint_eq(f.columns.names[COLUMN_USER].length, 9);
	ck_assert(!strncmp(f.columns.names[COLUMN_USER].text, "who is it", 9));
	ck_assert_uint_eq(f.columns.names[COLUMN_TIME].length, 0);
}
END_TEST

START_TEST(what_are_no_columns)
{
	static const char *const wrong[][2] = {
		{"", "has another word"},
		{"user", "does not name both user and item"},
		{"item,rating", "does not name both user and item"},
		{"user,item,user", "names a column twice"},
		{"user,item,", "has another word"},
		{"user,item,price", "has another word"},
		{"user=a,item", "mixes the two"},
		{"user,item=b", "mixes the two"},
		{"user=a,item=", "has an empty name"},
		{"user=a,-,item=b", "mixes the two"},
	};
	struct format f = {0};

	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		ck_assert_int_eq(format_read_columns(&f, wrong[k][0], error), -EINVAL);
		ck_assert_msg(strstr(error, wrong[k][1]), "%s", error);
		ck_assert_int_eq(f.columns.by, COLUMNS_UNKNOWN);
	}
	ck_assert_int_eq(format_read_columns(&f, "user,item", error), 0);
	f.kind = FORMAT_BASKETS;
	ck_assert_int_eq(format_check(&f, error), -EINVAL);
	f.kind = FORMAT_RATINGS;
	ck_assert_int_eq(format_check(&f, error), 0);
}
END_TEST

/* Each separator is told by an option that is read as that separator. */
START_TEST(words_lead_back)
{
	char option[SEPARATOR_TEXT], words[SEPARATOR_TEXT];
	struct format f = {0};
	size_t length;

	separator_option(separators[_i].separator, option);
	length = strlen(option);
	/* A shell takes the quotes away. */
	if (*option == '\'') {
		option[length - 1] = '\0';
		memmove(option, option + 1, length - 1);
	}
	ck_assert_int_eq(format_read_separator(&f, option, error), 0);
	ck_assert_str_eq(f.separator, separators[_i].separator);
	ck_assert_ptr_nonnull(separator_words(separators[_i].separator, words));
	ck_assert_uint_gt(strlen(words), 2);
}
END_TEST

static void add(TCase *tcase)
{
	int count = sizeof(separators) / sizeof(separators[0]);

	tcase_add_test(tcase, kinds);
	tcase_add_loop_test(tcase, separators_by_name_and_text, 0, count);
	tcase_add_test(tcase, what_is_no_separator);
	tcase_add_test(tcase, columns_by_place_and_name);
	tcase_add_test(tcase, what_are_no_columns);
	tcase_add_loop_test(tcase, words_lead_back, 0, count);
}

int main(void)
{
	return suite_main("data_format", add);
}
