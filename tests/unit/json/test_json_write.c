// SPDX-License-Identifier: MIT
/*
 * The writer of JSON: the bytes of each style, what it refuses, and that documents drawn at random
 * come back from the reader as they were.
 */
#include <math.h>
#include <stdio.h>

#include "json_help.h"
#include "suite.h"
#include "test_kernels.h"

#define DOCUMENTS 2000
#define NESTED_MOST 6

static char *end(struct json_writer *w)
{
	size_t length;
	char *text;

	ck_assert_msg(!json_write_end(w, &text, &length), "%s", w->why);
	ck_assert_uint_eq(strlen(text), length);
	return text;
}

static void write_all_kinds(struct json_writer *w)
{
	json_write_object(w, NULL);
	json_write_array(w, "a");
	json_write_close(w);
	json_write_object(w, "o");
	json_write_close(w);
	json_write_array(w, "b");
	json_write_array(w, NULL);
	json_write_close(w);
	json_write_object(w, NULL);
	json_write_close(w);
	json_write_number(w, NULL, UINT64_MAX);
	json_write_null(w, NULL);
	json_write_close(w);
	json_write_text(w, "s/\x01\x1f\x7f\b\f\n\r\t\"\\\xc3\xa9", "");
	json_write_flag(w, "t", true);
	json_write_flag(w, "f", false);
	json_write_close(w);
}

#define KEY "\"s/\\u0001\\u001f\x7f\\b\\f\\n\\r\\t\\\"\\\\\xc3\xa9\":"

/* As all checkpoints and profiles so far have them. */
static const struct {
	enum json_style style;
	const char *text;
} styles[] = {
	{JSON_COMPACT, "{\"a\":[],\"o\":{},\"b\":[[],{},18446744073709551615,null]," KEY
		       "\"\",\"t\":true,\"f\":false}"},
	{JSON_SPACED,
	 "{ \"a\": [ ], \"o\": { }, \"b\": [ [ ], { }, 18446744073709551615, null ], " KEY
	 " \"\", \"t\": true, \"f\": false }"},
	{JSON_LINES,
	 "{\n  \"a\": [\n  ],\n  \"o\": {\n  },\n  \"b\": [\n    [\n    ],\n    {\n    },\n"
	 "    18446744073709551615,\n    null\n  ],\n  " KEY
	 " \"\",\n  \"t\": true,\n  \"f\": false\n}\n"},
};

START_TEST(each_style)
{
	struct json_writer w;
	char *text;

	json_write_begin(&w, styles[_i].style);
	write_all_kinds(&w);
	text = end(&w);
	ck_assert_str_eq(text, styles[_i].text);
	free(text);
}
END_TEST

static const struct {
	double value;
	const char *text;
} reals[] = {
	{0.0, "0.0"},
	{-0.0, "-0.0"},
	{1.0, "1.0"},
	{0.5, "0.5"},
	{(double)0.1f, "0.10000000149011612"},
	{(double)1e-8f, "9.9999999392252903e-09"},
	{0x1p53, "9007199254740992.0"},
	{1e16, "10000000000000000.0"},
	{1e17, "1e+17"},
	{1e30, "1e+30"},
	{0x1.fffffffffffffp1023, "1.7976931348623157e+308"},
	{0x1p-1074, "4.9406564584124654e-324"},
};

START_TEST(each_real)
{
	struct json_writer w;
	char *text;

	json_write_begin(&w, JSON_COMPACT);
	json_write_real(&w, NULL, reals[_i].value);
	text = end(&w);
	ck_assert_str_eq(text, reals[_i].text);
	free(text);
}
END_TEST

static void expect_refused(struct json_writer *w, const char *why)
{
	char *text = NULL;
	size_t length;

	/* Calls after the fault change nothing. */
	json_write_text(w, NULL, "\xff");
	json_write_no_memory(w);
	ck_assert_int_eq(json_write_end(w, &text, &length), -EINVAL);
	ck_assert_str_eq(w->why, why);
	ck_assert_ptr_null(text);
}

START_TEST(refuses)
{
	struct json_writer w;

	json_write_begin(&w, JSON_LINES);
	json_write_object(&w, NULL);
	json_write_text(&w, "name", "a\xc3(");
	json_write_close(&w);
	expect_refused(&w, "the text of \"name\" is not UTF-8");
	json_write_begin(&w, JSON_LINES);
	json_write_array(&w, NULL);
	json_write_text(&w, NULL, "\xed\xa0\x80");
	json_write_close(&w);
	expect_refused(&w, "a text in a list is not UTF-8");
	json_write_begin(&w, JSON_LINES);
	json_write_object(&w, NULL);
	json_write_number(&w, "\x80", 1);
	json_write_close(&w);
	expect_refused(&w, "the name of a member is not UTF-8");
	for (int i = 0; i < 3; i++) {
		json_write_begin(&w, JSON_COMPACT);
		json_write_real(&w, NULL, (double[]){NAN, INFINITY, -INFINITY}[i]);
		expect_refused(&w, "a real is not finite, which JSON has no number for");
	}
}
END_TEST

START_TEST(depth_is_bounded)
{
	struct json_writer w;
	char *text;

	json_write_begin(&w, JSON_COMPACT);
	for (int i = 0; i < JSON_WRITE_DEPTH; i++)
		json_write_array(&w, NULL);
	for (int i = 0; i < JSON_WRITE_DEPTH; i++)
		json_write_close(&w);
	text = end(&w);
	ck_assert_uint_eq(strlen(text), 2 * JSON_WRITE_DEPTH);
	free(text);
	json_write_begin(&w, JSON_COMPACT);
	for (int i = 0; i <= JSON_WRITE_DEPTH; i++)
		json_write_array(&w, NULL);
	for (int i = 0; i <= JSON_WRITE_DEPTH; i++)
		json_write_close(&w);
	expect_refused(&w, "more than 32 containers in each other");
}
END_TEST

START_TEST(no_memory_is_reported)
{
	struct json_writer w;
	char *text = NULL;
	size_t length;

	json_write_begin(&w, JSON_COMPACT);
	json_write_array(&w, NULL);
	json_write_no_memory(&w);
	json_write_close(&w);
	ck_assert_int_eq(json_write_end(&w, &text, &length), -ENOMEM);
	ck_assert_str_eq(w.why, "no memory to write JSON");
	ck_assert_ptr_null(text);
}
END_TEST

/* -- at random ----------------------------------------------------------- */

/* Characters of all lengths, those that are escaped more often. */
static void draw_text(char text[64])
{
	static const char *const parts[] = {"a",
					    "\"",
					    "\\",
					    "/",
					    "\n",
					    "\x01",
					    "\x7f",
					    " ",
					    "\xc2\x80",
					    "\xe2\x82\xac",
					    "\xf0\x9f\x98\x80",
					    "\\u"};
	size_t count = random_below(12);

	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		strcat(text, parts[random_below(sizeof(parts) / sizeof(parts[0]))]);
}

static double draw_real(void)
{
	u64 bits = random_u64();
	double real;

	memcpy(&real, &bits, sizeof(real));
	return isfinite(real) ? real : (double)random_below(1000) / 8;
}

static void draw_value(struct json_writer *w, const char *name, unsigned int nested);

static void draw_container(struct json_writer *w, const char *name, unsigned int nested)
{
	bool object = random_below(2);
	size_t count = random_below(12);
	char text[64], key[80];

	if (object)
		json_write_object(w, name);
	else
		json_write_array(w, name);
	for (size_t i = 0; i < count; i++) {
		draw_text(text);
		snprintf(key, sizeof(key), "%zu%s", i, text);
		draw_value(w, object ? key : NULL, nested + 1);
	}
	json_write_close(w);
}

static void draw_value(struct json_writer *w, const char *name, unsigned int nested)
{
	char text[64];

	switch (random_below(nested < NESTED_MOST ? 7 : 5)) {
	case 0:
		json_write_null(w, name);
		return;
	case 1:
		json_write_flag(w, name, random_below(2));
		return;
	case 2:
		json_write_number(w, name, random_u64() >> random_below(64));
		return;
	case 3:
		json_write_real(w, name, draw_real());
		return;
	case 4:
		draw_text(text);
		json_write_text(w, name, text);
		return;
	default:
		draw_container(w, name, nested);
	}
}

START_TEST(whatever_is_written_is_read)
{
	random_start();
	for (int i = 0; i < DOCUMENTS; i++) {
		enum json_style style = (enum json_style)random_below(3);
		const struct json *document;
		struct json_writer w;
		char *first, *second;
		u64 seed = random_state;

		json_write_begin(&w, style);
		draw_container(&w, NULL, 0);
		first = end(&w);
		document = must_read(first);
		second = written(document, style);
		ck_assert_msg(!strcmp(first, second), "seed %#llx: %s became %s",
			      (unsigned long long)seed, first, second);
		json_free(document);
		free(first);
		free(second);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, each_style, 0, (int)(sizeof(styles) / sizeof(styles[0])));
	tcase_add_loop_test(tcase, each_real, 0, (int)(sizeof(reals) / sizeof(reals[0])));
	tcase_add_test(tcase, refuses);
	tcase_add_test(tcase, depth_is_bounded);
	tcase_add_test(tcase, no_memory_is_reported);
	tcase_add_test(tcase, whatever_is_written_is_read);
}

int main(void)
{
	return suite_main("json_write", add);
}
