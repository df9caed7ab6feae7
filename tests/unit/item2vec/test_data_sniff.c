// SPDX-License-Identifier: MIT
/* Formats that are found out from the first lines, and files that are refused. */
#include <errno.h>

#include "runtime/examples/item2vec/basket.h"
#include "runtime/examples/item2vec/ratings.h"
#include "runtime/examples/item2vec/sniff.h"
#include "cli_text.h"
#include "suite.h"

#define LINES 40

static char words[SNIFF_TEXT], text[1 << 16];

static int sniff_and_read(struct source *s, struct collector *c)
{
	int rc = sniff(s, words);

	if (rc)
		return rc;
	return s->format.kind == FORMAT_RATINGS ? ratings_read(s, c) : basket_read(s, c);
}

/* The fields of line @k of a file of ratings, of which "uirt" says the order; 4 lines a user. */
static void write_line(int k, const char *columns, const char *separator)
{
	for (const char *at = columns; *at; at++) {
		char *end = text + strlen(text);

		switch (*at) {
		case 'u':
			sprintf(end, "%d", 1 + k / 4);
			break;
		case 'i':
			sprintf(end, "%d", 200 + k * 7 % 31);
			break;
		case 'w':
			sprintf(end, "item%d", k * 7 % 31);
			break;
		case 'r':
			sprintf(end, "%d", 1 + k % 5);
			break;
		case 't':
			sprintf(end, "%d", 881250949 + k);
			break;
		case 'd':
			sprintf(end, "2005-04-%02dT12:00:00", 1 + k % 28);
			break;
		}
		if (at[1])
			strcat(text, separator);
	}
}

static void write_file(const char *columns, const char *separator, const char *end)
{
	for (int k = 0; k < LINES; k++) {
		write_line(k, columns, separator);
		strcat(text, end);
	}
}

static void expect_ratings(const char *separator)
{
	struct collector c;
	struct source s;
	int rc = read_bytes(sniff_and_read, text, strlen(text), &s, &c);

	ck_assert_msg(!rc, "%s", s.error);
	ck_assert_int_eq(s.format.kind, FORMAT_RATINGS);
	ck_assert_str_eq(s.format.separator, separator);
	ck_assert_uint_eq(c.use_count, LINES);
	ck_assert_uint_eq(c.baskets.count, LINES / 4);
	ck_assert_uint_eq(c.items.count, 31);
	ck_assert(!strncmp(words, "ratings, with ", 14));
	collector_free(&c);
}

static void expect_question(const char *separator, const char *option)
{
	struct collector c;
	struct source s;
	char told[64];

	ck_assert_int_eq(read_bytes(sniff_and_read, text, strlen(text), &s, &c), -EBADMSG);
	snprintf(told, sizeof(told), "file:1: the lines have %s between columns", separator);
	ck_assert_msg(!strncmp(s.error, told, strlen(told)), "%s", s.error);
	snprintf(told, sizeof(told), "--format baskets --separator %s", option);
	ck_assert_msg(strstr(s.error, told), "%s", s.error);
	ck_assert_uint_eq(c.use_count, 0);
	collector_free(&c);
}

static const char *const separators[] = {"\t", ",", ";", "::", "|"};

static const char *const ends[] = {"\n", "\r\n", " \n", "\t\n", " \r\n"};

START_TEST(ratings_with_each_separator)
{
	static const char *const columns[] = {"uirt", "uwrt", "uir", "uwr", "ui", "uird", "uit"};

	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
		for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++) {
			strcpy(text, e % 2 ? "\xef\xbb\xbf" : "");
			write_file(columns[c], separators[_i], ends[e]);
			expect_ratings(separators[_i]);
		}
	}
}
END_TEST

START_TEST(headers_decide)
{
	sprintf(text, "movieId%suserId%srating%snote\r\n", separators[_i], separators[_i],
		separators[_i]);
	for (int k = 0; k < LINES; k++) {
		write_line(k, "iur", separators[_i]);
		strcat(text, separators[_i]);
		strcat(text, "\"so so\"\r\n");
	}
	expect_ratings(separators[_i]);
}
END_TEST

/* Texts of a column have what separates columns elsewhere. */
START_TEST(headers_are_believed)
{
	static const char *const texts[] = {"A|B", "so; so", "x::y", "\"one, two\"", "a b"};

	sprintf(text, "user%sitem%stitle\n", separators[_i], separators[_i]);
	for (int k = 0; k < LINES; k++) {
		const char *title = texts[k % 2 ? 4 : (_i + 1) % 4];

		write_line(k, "ui", separators[_i]);
		sprintf(text + strlen(text), "%s%s\n", separators[_i], title);
	}
	expect_ratings(separators[_i]);
}
END_TEST

/* MovieLens 100k with blanks: the times are no items. */
START_TEST(ratings_with_blanks)
{
	text[0] = '\0';
	write_file("uirt", " ", "\n");
	expect_ratings(" ");
	strcpy(text, "user item rating\n");
	write_file("uir", " ", "\n");
	expect_ratings(" ");
}
END_TEST

static void write_baskets(const char *name, int from, int most, const char *separator)
{
	text[0] = '\0';
	for (int k = 0; k < LINES; k++) {
		for (int i = 0; i < from + k % (most - from + 1); i++)
			sprintf(text + strlen(text), "%s%s%d", i ? separator : "", name,
				(k * 13 + i * 17) % 90);
		strcat(text, "\n");
	}
}

static void expect_baskets(void)
{
	struct collector c;
	struct source s;
	int rc = read_bytes(sniff_and_read, text, strlen(text), &s, &c);

	ck_assert_msg(!rc, "%s", s.error);
	ck_assert_int_eq(s.format.kind, FORMAT_BASKETS);
	ck_assert_uint_eq(c.baskets.count, LINES);
	ck_assert(!strncmp(words, "a basket on each line", 21));
	collector_free(&c);
}

START_TEST(baskets_stay_baskets)
{
	static const char *const names[] = {"it", "", "a,b", "std::", "x;"};

	for (size_t n = 0; n < 2; n++) {
		for (int from = 3; from < 7; from++) {
			write_baskets(names[n], from, from, " ");
			expect_baskets();
			write_baskets(names[n], from, from + 3, " ");
			expect_baskets();
			write_baskets(names[n], from, from + 3, "\t");
			expect_baskets();
		}
	}
	write_baskets("it", 4, 4, "\t");
	expect_baskets();
	/* Here and there an item has a character that separates elsewhere. */
	for (size_t n = 2; n < 5; n++) {
		write_baskets("it", 3, 7, " ");
		sprintf(text + strlen(text) - 1, " %s\n", names[n]);
		expect_baskets();
	}
}
END_TEST

static const struct {
	const char *columns, *separator, *words, *option;
} questions[] = {
	{"utir", "\t", "a tab", "tab"},
	{"uitr", ",", "a comma", "comma"},
	{"udi", ";", "a semicolon", "semicolon"},
	{"uuuuui", "::", "'::'", "'::'"},
	{"www", "|", "'|'", "'|'"},
	{"uir", " ", "a blank", "blank"},
	{"ui", " ", "a blank", "blank"},
	{"uit", " ", "a blank", "blank"},
	{"iiii", "\t", "a tab", "tab"},
};

START_TEST(what_is_not_clear_is_asked)
{
	text[0] = '\0';
	write_file(questions[_i].columns, questions[_i].separator, "\n");
	expect_question(questions[_i].words, questions[_i].option);
}
END_TEST

START_TEST(baskets_with_separators_are_asked_about)
{
	static const char *const names[][2] = {{"a comma", "comma"},
					       {"a semicolon", "semicolon"},
					       {"'::'", "'::'"},
					       {"'|'", "'|'"}};
	static const char *const between[] = {",", ";", "::", "|"};

	for (size_t k = 0; k < 4; k++) {
		write_baskets("it", 2, 6, between[k]);
		expect_question(names[k][0], names[k][1]);
	}
	/* Words with blanks between tabs would be cut at both. */
	write_baskets("whole milk ", 2, 6, "\t");
	expect_question("a tab", "tab");
}
END_TEST

/* One bad line among ratings does not make baskets of them. */
START_TEST(a_bad_line_is_named)
{
	struct collector c;
	struct source s;

	text[0] = '\0';
	write_file("uirt", "\t", "\n");
	strcat(text, "9\t9\n");
	write_file("uirt", "\t", "\n");
	ck_assert_int_eq(read_bytes(sniff_and_read, text, strlen(text), &s, &c), -EBADMSG);
	ck_assert_str_eq(s.error, "file:41: the line has 2 columns, the first line has 4");
	collector_free(&c);
}
END_TEST

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *bytes;
	size_t length;
	const char *words;
} foreign[] = {
	{BYTES("\xff\xfe"
	       "a\0 \0b\0\n\0"),
	 "UTF-16 text (little-endian)"},
	{BYTES("\xfe\xff\0a\0 \0b\0\n"), "UTF-16 text (big-endian)"},
	{BYTES("a\0 \0b\0\n\0"), "UTF-16 text (little-endian, without a byte order mark)"},
	{BYTES("\0a\0 \0b\0\n"), "UTF-16 text (big-endian, without a byte order mark)"},
	{BYTES("\xff\xfe\0\0a\0\0\0"), "UTF-32 text"},
	{BYTES("\0\0\xfe\xff\0\0\0a"), "UTF-32 text"},
	{BYTES("\x1f\x8b\x08\0"), "compressed by gzip"},
	{BYTES("BZh91AY&SY\x11"), "compressed by bzip2"},
	{BYTES("\xfd"
	       "7zXZ\0"),
	 "compressed by xz"},
	{BYTES("\x28\xb5\x2f\xfd\x04"), "compressed by zstd"},
	{BYTES("PK\x03\x04\x14"), "zip archive"},
	{BYTES("{\"user\": 1}\n"), "JSON"},
	{BYTES("[ {\"user\": 1}]\n"), "JSON"},
	{BYTES("1,2\r3,4\r5,6"), "carriage return alone"},
};

START_TEST(foreign_files_are_named)
{
	struct collector c;
	struct source s;

	ck_assert_int_eq(read_bytes(sniff_and_read, foreign[_i].bytes, foreign[_i].length, &s, &c),
			 -EBADMSG);
	ck_assert_msg(!strncmp(s.error, "file:1: ", 8), "%s", s.error);
	ck_assert_msg(strstr(s.error, foreign[_i].words), "%s", s.error);
	collector_free(&c);
}
END_TEST

static int read_told_kind(struct source *s, struct collector *c)
{
	s->format.kind = FORMAT_RATINGS;
	return sniff_and_read(s, c);
}

/* Only the separator is looked for. */
START_TEST(told_to_be_ratings)
{
	struct collector c;
	struct source s;

	ck_assert_int_eq(read_bytes(read_told_kind, BYTES("a b 3\na c 4\n"), &s, &c), 0);
	ck_assert_str_eq(s.format.separator, " ");
	ck_assert_uint_eq(c.use_count, 2);
	collector_free(&c);
	ck_assert_int_eq(read_bytes(read_told_kind, BYTES("a\nb\n"), &s, &c), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(s.error, "say --separator"));
	collector_free(&c);
	ck_assert_int_eq(read_bytes(read_told_kind, BYTES("\n\n"), &s, &c), 0);
	ck_assert_uint_eq(c.use_count, 0);
	collector_free(&c);
}
END_TEST

START_TEST(nothing_to_look_at)
{
	struct collector c;
	struct source s;

	for (size_t k = 1; k < 4; k++) {
		ck_assert_int_eq(read_bytes(sniff_and_read, "\n\n\n", k, &s, &c), 0);
		ck_assert_uint_eq(c.use_count, 0);
		collector_free(&c);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, ratings_with_each_separator, 0, 5);
	tcase_add_loop_test(tcase, headers_decide, 0, 5);
	tcase_add_loop_test(tcase, headers_are_believed, 0, 5);
	tcase_add_test(tcase, ratings_with_blanks);
	tcase_add_test(tcase, baskets_stay_baskets);
	tcase_add_loop_test(tcase, what_is_not_clear_is_asked, 0,
			    sizeof(questions) / sizeof(questions[0]));
	tcase_add_test(tcase, baskets_with_separators_are_asked_about);
	tcase_add_test(tcase, a_bad_line_is_named);
	tcase_add_loop_test(tcase, foreign_files_are_named, 0,
			    sizeof(foreign) / sizeof(foreign[0]));
	tcase_add_test(tcase, told_to_be_ratings);
	tcase_add_test(tcase, nothing_to_look_at);
}

int main(void)
{
	return suite_main("data_sniff", add);
}
