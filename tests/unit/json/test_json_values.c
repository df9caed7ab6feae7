// SPDX-License-Identifier: MIT
/*
 * The values of a document that was read: numbers are right to the last bit in any locale and
 * rounding mode, and members are found by name and in order. Reading many members takes time that
 * does not grow with the square of their number.
 */
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <time.h>

#include "runtime/src/base/json_strict.h"
#include "checkpoint_help.h"
#include "fp_mode.h"
#include "json_help.h"
#include "suite.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

/* -- numbers ------------------------------------------------------------- */

static const struct {
	const char *text;
	bool negative;
	uint64_t magnitude;
	int64_t nearest;
} integers[] = {
	{"0", false, 0, 0},
	{"-0", true, 0, 0},
	{"1", false, 1, 1},
	{"-1", true, 1, -1},
	{"9007199254740992", false, 1ull << 53, 1ll << 53},
	{"9007199254740993", false, (1ull << 53) + 1, (1ll << 53) + 1},
	{"9223372036854775807", false, INT64_MAX, INT64_MAX},
	{"-9223372036854775807", true, INT64_MAX, -INT64_MAX},
	{"-9223372036854775808", true, 1ull << 63, INT64_MIN},
	{"9223372036854775808", false, 1ull << 63, INT64_MAX},
	{"18446744073709551615", false, UINT64_MAX, INT64_MAX},
};

START_TEST(integers_are_exact)
{
	const struct json *value = must_read(integers[_i].text);

	ck_assert(json_is(value, JSON_INTEGER));
	ck_assert_int_eq(value->negative, integers[_i].negative);
	ck_assert_uint_eq(value->magnitude, integers[_i].magnitude);
	ck_assert_int_eq(json_int64(value), integers[_i].nearest);
	ck_assert(json_double(value) ==
		  (integers[_i].negative ? -1.0 : 1.0) * (double)integers[_i].magnitude);
	json_free(value);
}
END_TEST

static const struct {
	const char *text;
	double value;
} reals[] = {
	{"0.0", 0.0},
	{"-0.0", -0.0},
	{"0.1", 0x1.999999999999ap-4},
	{"-2.5e3", -2500},
	{"1E2", 100},
	{"18446744073709551616", 0x1p64},
	{"-9223372036854775809", -0x1p63},
	{"123456789012345678901234567890", 0x1.8ee90ff6c373ep+96},
	{"9007199254740993.0", 0x1p53}, /* halfway: to the even one */
	{"9007199254740993.0000000000000000000001", 0x1.0000000000001p53},
	{"9007199254740995.0", 0x1.0000000000002p53},
	{"1.7976931348623157e308", 0x1.fffffffffffffp1023},
	{"1.797693134862315807e308", 0x1.fffffffffffffp1023},
	{"2.2250738585072014e-308", 0x1p-1022},
	{"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
	{"4.9406564584124654e-324", 0x1p-1074},
	{"2.4703282292062328e-324", 0x1p-1074},
	{"2.4703282292062327e-324", 0.0},
	{"1e-400", 0.0},
	{"-1e-400", -0.0},
	{"0e999", 0.0},
	{"9.9999999392252903e-09", 0x1.5798eep-27},
	{"0.000000000000000000000000000000000000000000000000000000000000000000000000001e75", 1.0},
};

START_TEST(reals_are_the_nearest)
{
	const struct json *value = must_read(reals[_i].text);
	double read = json_double(value);

	ck_assert(json_is(value, JSON_REAL));
	ck_assert_msg(!memcmp(&read, &reals[_i].value, sizeof(read)), "%s: %a, not %a",
		      reals[_i].text, read, reals[_i].value);
	ck_assert_int_eq(json_int64(value), 0);
	json_free(value);
}
END_TEST

/* As a framework may have set its threads: both units, and what fesetround() knows of. */
START_TEST(no_rounding_matters)
{
	const struct place at = {.file = "FILE"};
	const struct json *o;
	struct json_writer w;
	float number = 0, least = 0x1p-149f;
	uint32_t bits;
	size_t length;
	double read;
	char *text;

	for (int i = 0; i < COUNT(reals); i++) {
		fp_mode_set(_i);
		fesetround((const int[FP_MODES]){FE_TONEAREST, FE_TONEAREST, FE_UPWARD, FE_DOWNWARD,
						 FE_TOWARDZERO}[_i]);
		o = must_read(reals[i].text);
		text = written(o, JSON_COMPACT);
		fesetround(FE_TONEAREST);
		fp_mode_set(FP_DEFAULT);
		read = json_double(o);
		ck_assert_msg(!memcmp(&read, &reals[i].value, sizeof(read)), "%s, %s: %a",
			      fp_mode_names[_i], reals[i].text, read);
		json_free(o);
		o = must_read(text);
		ck_assert(json_double(o) == read);
		json_free(o);
		free(text);
	}
	fp_mode_set(_i);
	json_write_begin(&w, JSON_COMPACT);
	json_write_object(&w, NULL);
	json_write_float(&w, "least", least);
	json_write_close(&w);
	ck_assert_int_eq(json_finish(&w, "FILE", &text, &length), 0);
	o = must_read(text);
	ck_assert_int_eq(json_real(o, &at, "least", NULL, &number), 0);
	memcpy(&bits, &number, sizeof(bits));
	fp_mode_set(FP_DEFAULT);
	ck_assert_str_eq(text, "{\"least\":1.4012984643248171e-45}");
	ck_assert_uint_eq(bits, 1);
	json_free(o);
	free(text);
}
END_TEST

/* -- the locale ---------------------------------------------------------- */

static const char comma_source[] = "LC_NUMERIC\n"
				   "decimal_point \",\"\n"
				   "thousands_sep \".\"\n"
				   "grouping 3;3\n"
				   "END LC_NUMERIC\n";

static FILE *create_in(const char *folder, const char *name)
{
	char path[HELP_PATH + 32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	return file;
}

/* ASCII: not every machine has the maps of localedef's own package. */
static void write_map(FILE *file)
{
	fputs("<code_set_name> ASCII\n<mb_cur_min> 1\n<mb_cur_max> 1\nCHARMAP\n", file);
	for (int i = 0; i < 128; i++)
		fprintf(file, "<U%04X> \\x%02x c\n", i, i);
	fputs("END CHARMAP\n", file);
	ck_assert_int_eq(fclose(file), 0);
}

/* A locale of our own: which others a machine has, nobody knows. */
static void set_comma_locale(char folder[HELP_PATH])
{
	char command[5 * HELP_PATH];
	FILE *file;

	folder_new(folder);
	write_map(create_in(folder, "map"));
	file = create_in(folder, "source");
	ck_assert_int_ge(fputs(comma_source, file), 0);
	ck_assert_int_eq(fclose(file), 0);
	snprintf(command, sizeof(command),
		 "localedef -c -i %s/source -f %s/map %s/comma >%s/log 2>&1", folder, folder,
		 folder, folder);
	/* Exit status 1: it has the one category that it was given, and misses the others. */
	ck_assert_int_le(WEXITSTATUS(system(command)), 1);
	ck_assert_int_eq(setenv("LOCPATH", folder, 1), 0);
	ck_assert_msg(setlocale(LC_NUMERIC, "comma"), "localedef made no locale");
}

static void remove_comma_locale(const char *folder)
{
	char command[HELP_PATH + 32];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(no_locale_matters)
{
	const struct json *document;
	char folder[HELP_PATH], *text, libc[32];

	set_comma_locale(folder);
	snprintf(libc, sizeof(libc), "%.1f", 1.5);
	ck_assert_str_eq(libc, "1,5");
	document = must_read("[1.5,-0.25e-2,1e300,12345.0]");
	ck_assert(json_double(json_at(document, 0)) == 1.5);
	ck_assert(json_double(json_at(document, 1)) == -0.0025);
	text = written(document, JSON_COMPACT);
	ck_assert_str_eq(text, "[1.5,-0.0025000000000000001,1.0000000000000001e+300,12345.0]");
	ck_assert_str_eq(localeconv()->decimal_point, ",");
	free(text);
	json_free(document);
	remove_comma_locale(folder);
}
END_TEST

/* -- looking ------------------------------------------------------------- */

START_TEST(values_are_found)
{
	const struct json *o = must_read("{\"t\":\"a\\u0000b\",\"n\":null,\"y\":true,\"f\":false,"
					 "\"l\":[1,[2]],\"s\":\"a\"}");
	const struct json *text = json_get(o, "t"), *list = json_get(o, "l");

	ck_assert_uint_eq(json_length(o), 6);
	ck_assert_str_eq(json_name(o, 0), "t");
	ck_assert_str_eq(json_name(o, 5), "s");
	ck_assert_ptr_eq(json_at(o, 0), text);
	ck_assert_ptr_null(json_at(o, 6));
	ck_assert_ptr_null(json_get(o, "T"));
	ck_assert_ptr_null(json_get(o, "tt"));
	ck_assert_ptr_null(json_get(list, "t"));
	ck_assert_ptr_null(json_get(NULL, "t"));
	ck_assert_uint_eq(text->length, 3);
	ck_assert_mem_eq(text->text, "a\0b", 4);
	ck_assert(!json_says(text, "a"));
	ck_assert(json_is(json_get(o, "n"), JSON_NULL));
	ck_assert(json_is(NULL, JSON_NULL));
	ck_assert(json_true(json_get(o, "y")));
	ck_assert(!json_true(json_get(o, "f")));
	ck_assert(!json_true(list));
	ck_assert_uint_eq(json_length(list), 2);
	ck_assert_int_eq(json_int64(json_at(list, 0)), 1);
	ck_assert_int_eq(json_int64(json_at(json_at(list, 1), 0)), 2);
	ck_assert_ptr_null(json_at(list, 2));
	ck_assert_uint_eq(json_length(text), 0);
	ck_assert_ptr_null(json_string(list));
	ck_assert(json_says(json_get(o, "s"), "a"));
	json_free(o);
}
END_TEST

#define MANY 100000

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Compared each with each they would take minutes. */
START_TEST(many_members_are_fast)
{
	char *text = malloc(MANY * 24), *to = text, why[JSON_WHY];
	const struct json *document;
	double begun;

	for (int i = 0; i < MANY; i++)
		to += sprintf(to, "%c\"member%06d\":%d", i ? ',' : '{', i, i);
	sprintf(to, "}");
	begun = seconds();
	document = must_read(text);
	ck_assert_double_lt(seconds() - begun, 5);
	ck_assert_uint_eq(json_length(document), MANY);
	ck_assert_int_eq(json_int64(json_get(document, "member099999")), 99999);
	ck_assert_str_eq(json_name(document, 4711), "member004711");
	json_free(document);
	sprintf(to, ",\"member000001\":0}");
	document = NULL;
	ck_assert_int_eq(read_json(text, strlen(text), &document, why), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why, "two members of the same name"));
	free(text);
}
END_TEST

/* As many as no block of memory holds, and one text larger than any block. */
START_TEST(large_documents)
{
	const size_t bytes = (size_t)5 << 20;
	char *text = malloc(bytes + 64), *again;
	const struct json *document;

	memset(text, 'x', bytes);
	memcpy(text, "[\"", 2);
	memcpy(text + bytes, "\",1]", 5);
	document = must_read(text);
	ck_assert_uint_eq(json_at(document, 0)->length, bytes - 2);
	again = written(document, JSON_COMPACT);
	ck_assert_str_eq(again, text);
	free(again);
	json_free(document);
	for (size_t i = 0; i < bytes; i++)
		text[i] = i % 2 ? '7' : ',';
	text[0] = '[';
	memcpy(text + bytes, "]", 2);
	document = must_read(text);
	ck_assert_uint_eq(json_length(document), bytes / 2);
	ck_assert_int_eq(json_int64(json_at(document, bytes / 2 - 1)), 7);
	json_free(document);
	free(text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, integers_are_exact, 0, COUNT(integers));
	tcase_add_loop_test(tcase, reals_are_the_nearest, 0, COUNT(reals));
	tcase_add_loop_test(tcase, no_rounding_matters, 0, FP_MODES);
	tcase_add_test(tcase, no_locale_matters);
	tcase_add_test(tcase, values_are_found);
	tcase_add_test(tcase, many_members_are_fast);
	tcase_add_test(tcase, large_documents);
}

int main(void)
{
	return suite_main("json_values", add);
}
