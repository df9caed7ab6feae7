// SPDX-License-Identifier: MIT
/* Interactions from comma-separated values. */
#include <errno.h>

#include "runtime/examples/item2vec/csv.h"
#include "cli_text.h"
#include "suite.h"

START_TEST(without_header)
{
	expect_uses(csv_read, "1,10\n1,11\n\n2,10\n", "1:10 1:11 2:10");
	expect_uses(csv_read, "1,10,3.5,964982703\n", "1:10");
}
END_TEST

START_TEST(movielens_as_it_comes)
{
	expect_uses(csv_read, "userId,movieId,rating,timestamp\r\n1,31,2.5,1260759144\r\n", "1:31");
}
END_TEST

START_TEST(columns_by_name)
{
	expect_uses(
		csv_read,
		"\"\",\"movieId\",\"title\",\"User_ID\"\n\"1\",31,\"Twelve, \"\"or\"\" so\",7\n",
		"7:31");
	expect_uses(csv_read, "\xef\xbb\xbfuser,item\na,b\n", "a:b");
}
END_TEST

START_TEST(times_are_kept)
{
	struct source s;
	struct collector c;
	const char *text = "1,10,5,100\n1,11,5,-7\n";

	ck_assert_int_eq(read_bytes(csv_read, text, strlen(text), &s, &c), 0);
	ck_assert(c.timed);
	ck_assert_int_eq(c.uses[0].time, 100);
	ck_assert_int_eq(c.uses[1].time, -7);
	collector_free(&c);
	ck_assert_int_eq(read_bytes(csv_read, "1,10,5\n", 7, &s, &c), 0);
	ck_assert(!c.timed);
	collector_free(&c);
}
END_TEST

static const struct {
	const char *text, *sentence;
} malformed[] = {
	{"1,2\n1,2,3\n", "file:2: the line has 3 columns, the first line has 2"},
	{"1,2\n1\n", "file:2: the line has 1 columns, the first line has 2"},
	{"1,2\n,2\n", "file:2: the user is empty"},
	{"1,2\n1,\n", "file:2: the item is empty"},
	{"1,2,good\n", "file:1: the rating 'good' is not a number"},
	{"1,2,\n", "file:1: the rating '' is not a number"},
	{"1,2,nan\n", "file:1: the rating 'nan' is not a number"},
	{"1,2,3,noon\n", "file:1: the timestamp 'noon' is not a number"},
	{"1,2,3,1e30\n", "file:1: the timestamp '1e30' is beyond 2^62"},
	{"1,2\n1,\"2\n", "file:2: the line opens a quote and does not close it"},
	{"1,\"2\"3\n", "file:1: a comma must follow the closing quote, not '3'"},
	{"1,2,3,4,5\n", "file:1: the line has 5 columns and no header names user and item"},
	{"1\n", "file:1: the line has 1 columns and no header names user and item"},
};

START_TEST(malformed_lines_are_named)
{
	expect_malformed(csv_read, malformed[_i].text, malformed[_i].sentence);
}
END_TEST

START_TEST(too_many_columns)
{
	char text[600];

	memset(text, ',', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	expect_malformed(csv_read, text, "file:1: the line has more than 256 columns");
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, without_header);
	tcase_add_test(tcase, movielens_as_it_comes);
	tcase_add_test(tcase, columns_by_name);
	tcase_add_test(tcase, times_are_kept);
	tcase_add_loop_test(tcase, malformed_lines_are_named, 0,
			    sizeof(malformed) / sizeof(malformed[0]));
	tcase_add_test(tcase, too_many_columns);
}

int main(void)
{
	return suite_main("data_csv", add);
}
