// SPDX-License-Identifier: MIT
/* Interactions from separated values. */
#include <errno.h>

#include "runtime/examples/item2vec/ratings.h"
#include "cli_text.h"
#include "suite.h"

START_TEST(without_header)
{
	expect_uses(ratings_read, "1,10\n1,11\n\n2,10\n", "1:10 1:11 2:10");
	expect_uses(ratings_read, "1,10,3.5,964982703\n", "1:10");
}
END_TEST

START_TEST(movielens_as_it_comes)
{
	expect_uses(ratings_read, "userId,movieId,rating,timestamp\r\n1,31,2.5,1260759144\r\n",
		    "1:31");
}
END_TEST

START_TEST(columns_by_name)
{
	expect_uses(
		ratings_read,
		"\"\",\"movieId\",\"title\",\"User_ID\"\n\"1\",31,\"Twelve, \"\"or\"\" so\",7\n",
		"7:31");
	expect_uses(ratings_read, "\xef\xbb\xbfuser,item\na,b\n", "a:b");
}
END_TEST

START_TEST(times_are_kept)
{
	struct source s;
	struct collector c;
	const char *text = "1,10,5,100\n1,11,5,-7\n";

	ck_assert_int_eq(read_bytes(ratings_read, text, strlen(text), &s, &c), 0);
	ck_assert(c.timed);
	ck_assert_int_eq(c.uses[0].time, 100);
	ck_assert_int_eq(c.uses[1].time, -7);
	collector_free(&c);
	ck_assert_int_eq(read_bytes(ratings_read, "1,10,5\n", 7, &s, &c), 0);
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
	expect_malformed(ratings_read, malformed[_i].text, malformed[_i].sentence);
}
END_TEST

START_TEST(too_many_columns)
{
	char text[600];

	memset(text, ',', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	expect_malformed(ratings_read, text, "file:1: the line has more than 256 columns");
}
END_TEST

/* Reads ratings between tabs or others, and columns as they are told. */
static int read_told(struct source *s, struct collector *c, const char *separator,
		     const char *columns, const char *text)
{
	char error[FORMAT_ERROR];
	int rc;

	*s = (struct source){.stream = fmemopen((void *)text, strlen(text), "r"), .name = "file"};
	*c = (struct collector){0};
	if (separator)
		ck_assert_int_eq(format_read_separator(&s->format, separator, error), 0);
	if (columns)
		ck_assert_int_eq(format_read_columns(&s->format, columns, error), 0);
	rc = ratings_read(s, c);
	fclose(s->stream);
	source_free(s);
	return rc;
}

static const struct {
	const char *separator, *columns, *text, *uses;
} told[] = {
	{"tab", NULL, "1\t10\t5\t100\n1\t11\t4\t99\n", "1:10@100 1:11@99"},
	{"tab", NULL, "1\t10\t5\t100\t\n1\t11\t4\t99\t\n2\t3\t1\t4\n", "1:10@100 1:11@99 2:3@4"},
	{"tab", NULL, "a b\tc d \t5\t1 \r\n", "a b:c d@1"},
	{"::", NULL, "1::1193::5::978300760\n", "1:1193@978300760"},
	{";", NULL, "1;2;3,5;7\n\"1\" ; \"x;y\"; 4 ;8\n", "1:2@7 1:x;y@8"},
	{"|", NULL, "1|2|3|4|\n", NULL},
	{"|", NULL, "1|2|3|4\n1|3|3|5|\n", "1:2@4 1:3@5"},
	{"blank", NULL, " 1  2\t3   4 \n", "1:2@4"},
	{"tab", NULL, "user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\t2\t3\t4\n",
	 "1:2@4"},
	{NULL, "item,user", "10,1\n", "1:10"},
	{NULL, "-,item,-,user,time", "x,10,y,1,-9\n", "1:10@-9"},
	{NULL, "item,user,rating", "wer,was,note\n10,1,3\n", "1:10"},
	{NULL, "user=wer,item=was,timestamp=wann", "was,wann,wer\n10,3,1\n", "1:10@3"},
	{NULL, NULL, "1,2,3,1970-01-02\n", "1:2@86400"},
	{NULL, NULL, "1,2,3,2005-04-02 23:53:47\n", "1:2@1112486027"},
	{NULL, NULL, "1,2,3,2000-02-29T00:00:00.5Z\n", "1:2@951782400"},
	{NULL, NULL, "1,2,3,1970/01/01T01:00+01:00\n", "1:2@0"},
	{NULL, NULL, "1,2,3,1969-12-31 22:59:60-01:00\n", "1:2@0"},
	{NULL, NULL, "1,2,3,1.5e9\n", "1:2@1500000000"},
	{NULL, NULL, "1, 2 ,3,4\n \n\t\n", "1:2@4"},
};

START_TEST(as_it_was_told)
{
	char all[256] = "";
	struct collector c;
	struct source s;
	int rc = read_told(&s, &c, told[_i].separator, told[_i].columns, told[_i].text);

	if (!told[_i].uses) {
		ck_assert_int_eq(rc, -EBADMSG);
		collector_free(&c);
		return;
	}
	ck_assert_msg(!rc, "%s", s.error);
	for (size_t k = 0; k < c.use_count; k++) {
		size_t at = strlen(all);

		at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s:%s", k ? " " : "",
				       c.baskets.text[c.uses[k].basket],
				       c.items.text[c.uses[k].item]);
		if (c.timed)
			snprintf(all + at, sizeof(all) - at, "@%lld", (long long)c.uses[k].time);
	}
	ck_assert_str_eq(all, told[_i].uses);
	collector_free(&c);
}
END_TEST

static const struct {
	const char *separator, *columns, *text, *sentence;
} told_wrong[] = {
	{"tab", NULL, "1\t2\n1,2\n", "file:2: the line has 1 columns, the first line has 2"},
	{"::", NULL, "\"1\"x::2\n", "file:1: '::' must follow the closing quote, not 'x::2'"},
	{"tab", NULL, "\"1\"x\t2\n", "file:1: a tab must follow the closing quote"},
	{NULL, "user,item", "1,2,3\n", "file:1: the line has 3 columns, and --columns names 2"},
	{NULL, "user=wer,item=was", "wer,wo\n",
	 "file:1: the header has no column 'was', which --columns names; it has wer, wo"},
	{NULL, NULL, "wer,was,note\n1,2,3\n",
	 "file:1: the rating 'note' is not a number; if the first line is a header, name its "
	 "columns"},
	{NULL, NULL, "1,2,3,4\n1,2,3,2005-13-01\n", "file:2: the timestamp '2005-13-01' is not"},
	{NULL, NULL, "1,2,3,2005-04-02 25:00:00\n", "file:1: the timestamp '2005-04-02 25:00:00'"},
	{NULL, NULL, "1,2,3,2005-04-02 24:00:00x\n", "file:1: the timestamp"},
	{NULL, NULL, "1,2\n1,\x1b[31m\n", "file:2: control character 0x1b in column 3"},
};

START_TEST(told_wrongly)
{
	struct collector c;
	struct source s;
	int rc = read_told(&s, &c, told_wrong[_i].separator, told_wrong[_i].columns,
			   told_wrong[_i].text);

	ck_assert_int_eq(rc, -EBADMSG);
	ck_assert_msg(!strncmp(s.error, told_wrong[_i].sentence, strlen(told_wrong[_i].sentence)),
		      "%s", s.error);
	collector_free(&c);
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
	tcase_add_loop_test(tcase, as_it_was_told, 0, sizeof(told) / sizeof(told[0]));
	tcase_add_loop_test(tcase, told_wrongly, 0, sizeof(told_wrong) / sizeof(told_wrong[0]));
}

int main(void)
{
	return suite_main("data_ratings", add);
}
