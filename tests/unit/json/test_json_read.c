// SPDX-License-Identifier: MIT
/*
 * The reader of JSON: what it takes, with which values, and what it refuses, at which byte and why.
 * Documents are read from memory that ends where they do; each is freed by the test that read it.
 */
#include <math.h>
#include <time.h>

#include "json_help.h"
#include "suite.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* -- the grammar --------------------------------------------------------- */

static const struct {
	const char *text, *means; /* written again without spaces */
} good[] = {
	{"null", "null"},
	{" \t\r\n true \t\r\n ", "true"},
	{"[false]", "[false]"},
	{"{}", "{}"},
	{"[ ]", "[]"},
	{"[1 , 2,3]", "[1,2,3]"},
	{"{ \"a\" : 1 , \"b\":[{}]}", "{\"a\":1,\"b\":[{}]}"},
	{"{\"\":1,\" \":2,\"A\":3,\"a\":4}", "{\"\":1,\" \":2,\"A\":3,\"a\":4}"},
	{"{\"b\":1,\"a\":2}", "{\"b\":1,\"a\":2}"},
	{"[{\"a\":1},{\"a\":1}]", "[{\"a\":1},{\"a\":1}]"},
	{"{\"a\":{\"a\":{\"a\":0}}}", "{\"a\":{\"a\":{\"a\":0}}}"},
	{"\"\"", "\"\""},
	{"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
	{"\"\\u0041\\u00e9\\u20AC\\u20ac\"", "\"A\xc3\xa9\xe2\x82\xac\xe2\x82\xac\""},
	{"\"\\u0000\\u001f\x7f\"", "\"\\u0000\\u001f\x7f\""},
	{"\"\\ud800\\udc00 \\uDBFF\\uDFFF\"", "\"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\""},
	{"\"// not /* a comment */\"", "\"// not /* a comment */\""},
	{"0", "0"},
	{"-0", "-0"},
	{"-1", "-1"},
	{"9007199254740993", "9007199254740993"},
	{"9223372036854775807", "9223372036854775807"},
	{"-9223372036854775808", "-9223372036854775808"},
	{"9223372036854775808", "9223372036854775808"},
	{"18446744073709551615", "18446744073709551615"},
	{"0.5", "0.5"},
	{"-0.0", "-0.0"},
	{"0e5", "0.0"},
	{"1E+2", "100.0"},
	{"1e-2", "0.01"},
	{"[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]", "[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]"},
	{"[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]"},
};

START_TEST(takes)
{
	const struct json *document = must_read(good[_i].text);
	char *text = written(document, JSON_COMPACT);

	ck_assert_str_eq(text, good[_i].means);
	free(text);
	json_free(document);
}
END_TEST

#define BYTES(text) text, sizeof(text) - 1

#define EARLY "the text ends too early"
#define PLACE "a character that has no place here"
#define HALF "one half of a surrogate pair without the other"
#define TWICE "an object has two members of the same name"
#define BEHIND "something stands behind the document"
#define NO_UTF8 "a text that is not UTF-8"
#define HEX "\\u without four hexadecimal digits"

static const struct {
	const char *text;
	size_t length, at;
	const char *why;
} bad[] = {
	{BYTES(""), 0, EARLY},
	{BYTES(" \n"), 2, EARLY},
	{BYTES("["), 1, EARLY},
	{BYTES("[1"), 2, EARLY},
	{BYTES("[1,"), 3, EARLY},
	{BYTES("{"), 1, EARLY},
	{BYTES("{\"a"), 3, EARLY},
	{BYTES("{\"a\""), 4, EARLY},
	{BYTES("{\"a\":"), 5, EARLY},
	{BYTES("{\"a\":1"), 6, EARLY},
	{BYTES("{\"a\":1,"), 7, EARLY},
	{BYTES("\"a"), 2, EARLY},
	{BYTES("\"a\\"), 3, EARLY},
	{BYTES("\"\\\""), 3, EARLY},
	{BYTES("\"\\u12"), 5, EARLY},
	{BYTES("\"\\ud800"), 7, EARLY},
	{BYTES("\"\\ud800\\"), 8, EARLY},
	{BYTES("\"\\ud800\\udc0"), 12, EARLY},
	{BYTES("tru"), 3, EARLY},
	{BYTES("-"), 1, EARLY},
	{BYTES("1."), 2, EARLY},
	{BYTES("1e"), 2, EARLY},
	{BYTES("1e+"), 3, EARLY},
	{BYTES("[,1]"), 1, PLACE},
	{BYTES("[1,]"), 3, PLACE},
	{BYTES("[1 2]"), 3, PLACE},
	{BYTES("[1}"), 2, PLACE},
	{BYTES("]"), 0, PLACE},
	{BYTES("{,}"), 1, PLACE},
	{BYTES("{\"a\":1,}"), 7, PLACE},
	{BYTES("{\"a\" 1}"), 5, PLACE},
	{BYTES("{\"a\":1 \"b\":2}"), 7, PLACE},
	{BYTES("{\"a\":1]"), 6, PLACE},
	{BYTES("{\"a\"::1}"), 5, PLACE},
	{BYTES("{a:1}"), 1, PLACE},
	{BYTES("{1:1}"), 1, PLACE},
	{BYTES("{'a':1}"), 1, PLACE},
	{BYTES("// c\n1"), 0, PLACE},
	{BYTES("[1/**/]"), 2, PLACE},
	{BYTES("\xef\xbb\xbf{}"), 0, PLACE},
	{BYTES("[1\0]"), 2, PLACE},
	{BYTES("\0"), 0, PLACE},
	{BYTES("[\v1]"), 1, PLACE},
	{BYTES("True"), 0, PLACE},
	{BYTES("trux"), 3, PLACE},
	{BYTES("[nullx]"), 5, PLACE},
	{BYTES("NaN"), 0, PLACE},
	{BYTES("nan"), 1, PLACE},
	{BYTES("Infinity"), 0, PLACE},
	{BYTES("+1"), 0, PLACE},
	{BYTES(".5"), 0, PLACE},
	{BYTES("[0x10]"), 2, PLACE},
	{BYTES("[1.5.5]"), 4, PLACE},
	{BYTES("[1,5 5]"), 5, PLACE},
	{BYTES("-Infinity"), 1, "a minus sign without a digit behind it"},
	{BYTES("--1"), 1, "a minus sign without a digit behind it"},
	{BYTES("[00]"), 2, "a number with a zero before its first digit"},
	{BYTES("-01"), 2, "a number with a zero before its first digit"},
	{BYTES("[1.]"), 3, "a decimal point without a digit behind it"},
	{BYTES("[1.e5]"), 3, "a decimal point without a digit behind it"},
	{BYTES("[1e]"), 3, "an exponent without a digit"},
	{BYTES("[1e+-1]"), 4, "an exponent without a digit"},
	{BYTES("[1e999]"), 1, "a number that no 64-bit float reaches"},
	{BYTES("[-1e309]"), 1, "a number that no 64-bit float reaches"},
	{BYTES("1 1"), 2, BEHIND},
	{BYTES("{}x"), 2, BEHIND},
	{BYTES("{}{}"), 2, BEHIND},
	{BYTES("1\0"), 1, BEHIND},
	{BYTES("truetrue"), 4, BEHIND},
	{BYTES("\"a\tb\""), 2, "a control character in a text"},
	{BYTES("\"a\nb\""), 2, "a control character in a text"},
	{BYTES("\"a\0b\""), 2, "a control character in a text"},
	{BYTES("\"\x1f\""), 1, "a control character in a text"},
	{BYTES("\"\\a\""), 2, "a backslash before a character that needs none"},
	{BYTES("\"\\'\""), 2, "a backslash before a character that needs none"},
	{BYTES("\"\\U0041\""), 2, "a backslash before a character that needs none"},
	{BYTES("\"\\\0\""), 2, "a backslash before a character that needs none"},
	{BYTES("\"\\u004g\""), 6, HEX},
	{BYTES("\"\\u 041\""), 3, HEX},
	{BYTES("\"\\u004\""), 6, HEX},
	{BYTES("\"\\ud800\""), 7, HALF},
	{BYTES("\"\\ud800x\""), 7, HALF},
	{BYTES("\"\\ud800\\n\""), 8, HALF},
	{BYTES("\"\\ud800\\ud800\""), 13, HALF},
	{BYTES("\"\\udbff\\ue000\""), 13, HALF},
	{BYTES("\"\\udc00\""), 7, HALF},
	{BYTES("\"\\udfff\\ud800\""), 7, HALF},
	{BYTES("{\"a\":1,\"a\":1}"), 7, TWICE},
	{BYTES("{\"a\":1,\"b\":2,\"\\u0061\":3}"), 13, TWICE},
	{BYTES("{\"\xc3\xa9\":1,\"\\u00e9\":2}"), 8, TWICE},
	{BYTES("[{\"x\":{\"\":1,\"\":2}}]"), 12, TWICE},
	{BYTES("{\"a\\u0000\":1}"), 1, "a member's name has a zero byte inside"},
	{BYTES("[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), 16, "a value lies deeper than 16 levels"},
	{BYTES("[[[[[[[[[[[[[[[{\"a\":1}]]]]]]]]]]]]]]]"), 20,
	 "a value lies deeper than 16 levels"},
};

START_TEST(refuses)
{
	const struct json *document = NULL;
	char why[JSON_WHY], want[JSON_WHY];
	int ret = read_json(bad[_i].text, bad[_i].length, &document, why);

	snprintf(want, sizeof(want), "no JSON at byte %zu: %s", bad[_i].at, bad[_i].why);
	ck_assert_msg(ret == -EBADMSG, "%s: %d", bad[_i].text, ret);
	ck_assert_str_eq(why, want);
	ck_assert_ptr_null(document);
}
END_TEST

/* A document of all kinds, each of its beginnings, and each with a byte that is another. */
START_TEST(no_part_is_taken_for_the_whole)
{
	static const char whole[] = "{\"a\":[1,-2.5e3,true,false,null],\"\\u00e9\\ud83d\\ude00\":"
				    "{\"b\":\"\xf0\x9f\x98\x80\",\"c\":{}}}";
	const struct json *document = NULL;
	char why[JSON_WHY], changed[sizeof(whole)];

	json_free(must_read(whole));
	for (size_t length = 0; length < sizeof(whole) - 1; length++)
		ck_assert_int_eq(read_json(whole, length, &document, why), -EBADMSG);
	for (size_t at = 0; at < sizeof(whole) - 1; at++) {
		for (int byte = 0; byte < 256; byte++) {
			memcpy(changed, whole, sizeof(whole));
			changed[at] = (char)byte;
			document = NULL;
			if (read_json(changed, sizeof(whole) - 1, &document, why))
				ck_assert_ptr_null(document);
			json_free(document);
		}
	}
}
END_TEST

/* -- UTF-8 --------------------------------------------------------------- */

/* clang-format off */
static const struct {
	const char *bytes;
	bool good;
} sequences[] = {
	{"\x7f", true},		    {"\xc2\x80", true},		{"\xdf\xbf", true},
	{"\xe0\xa0\x80", true},	    {"\xed\x9f\xbf", true},	{"\xee\x80\x80", true},
	{"\xef\xbf\xbf", true},	    {"\xf0\x90\x80\x80", true}, {"\xf4\x8f\xbf\xbf", true},
	{"\xc2\xba", true},	    {"\x80", false},		{"\xbf", false},
	{"\xc0\x80", false},	    {"\xc1\xbf", false},	{"\xc2", false},
	{"\xc2\x7f", false},	    {"\xc2\xc0", false},	{"\xe0\x80\x80", false},
	{"\xe0\x9f\xbf", false},    {"\xed\xa0\x80", false},	{"\xed\xbf\xbf", false},
	{"\xe2\x82", false},	    {"\xe2\x28\xa1", false},	{"\xf0\x80\x80\x80", false},
	{"\xf0\x8f\xbf\xbf", false}, {"\xf0\x90\x80", false},	{"\xf4\x90\x80\x80", false},
	{"\xf5\x80\x80\x80", false}, {"\xf8\x88\x80\x80\x80", false}, {"\xfe", false},
	{"\xff", false},
};
/* clang-format on */

START_TEST(utf8)
{
	const char *bytes = sequences[_i].bytes;
	const struct json *document = NULL;
	char text[32], why[JSON_WHY];
	struct json_writer w;
	size_t length;
	char *out;
	int ret;

	snprintf(text, sizeof(text), "[\"a%sb\"]", bytes);
	ret = read_json(text, strlen(text), &document, why);
	ck_assert_int_eq(ret, sequences[_i].good ? 0 : -EBADMSG);
	if (ret)
		ck_assert_str_eq(why, "no JSON at byte 3: " NO_UTF8);
	else
		ck_assert_mem_eq(json_string(json_at(document, 0)) + 1, bytes, strlen(bytes));
	json_free(document);
	json_write_begin(&w, JSON_COMPACT);
	json_write_text(&w, NULL, bytes);
	ret = json_write_end(&w, &out, &length);
	ck_assert_int_eq(ret, sequences[_i].good ? 0 : -EINVAL);
	if (!ret)
		free(out);
}
END_TEST

START_TEST(each_code_point_is_one_text)
{
	char escaped[32], why[JSON_WHY];

	for (unsigned int code = 1; code <= 0x10ffff; code += code < 0x3000 ? 1 : 251) {
		const struct json *document = NULL;
		unsigned int above = code - 0x10000;
		bool lone = code >= 0xd800 && code < 0xe000;
		int ret;

		if (code < 0x10000)
			snprintf(escaped, sizeof(escaped), "\"\\u%04X\"", code);
		else
			snprintf(escaped, sizeof(escaped), "\"\\u%04x\\u%04x\"",
				 0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff));
		ret = read_json(escaped, strlen(escaped), &document, why);
		ck_assert_msg(ret == (lone ? -EBADMSG : 0), "%s: %s", escaped, why);
		if (!ret) {
			const unsigned char *p = (const unsigned char *)document->text;
			unsigned int n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
			unsigned int back = n == 1 ? p[0] : p[0] & (0x7fu >> n);

			for (unsigned int i = 1; i < n; i++)
				back = back << 6 | (p[i] & 0x3f);
			ck_assert_uint_eq(document->length, n);
			ck_assert_uint_eq(back, code);
		}
		json_free(document);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, takes, 0, COUNT(good));
	tcase_add_loop_test(tcase, refuses, 0, COUNT(bad));
	tcase_add_test(tcase, no_part_is_taken_for_the_whole);
	tcase_add_loop_test(tcase, utf8, 0, COUNT(sequences));
	tcase_add_test(tcase, each_code_point_is_one_text);
}

int main(void)
{
	return suite_main("json_read", add);
}
