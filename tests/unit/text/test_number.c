// SPDX-License-Identifier: MIT
/* Whole numbers in text, at the limits of what is one. */
#include <errno.h>
#include <string.h>

#include "runtime/text/number.h"
#include "suite.h"

#define UNTOUCHED 77

struct reading {
	const char *text;
	int ret;
	uint64_t value;
};

static const struct reading decimal[] = {
	{"0", 0, 0},
	{"7", 0, 7},
	{"00012", 0, 12},
	{"18446744073709551615", 0, UINT64_MAX},
	{"000018446744073709551615", 0, UINT64_MAX},
	{"18446744073709551616", -ERANGE, UNTOUCHED},
	{"18446744073709551620", -ERANGE, UNTOUCHED},
	{"184467440737095516150", -ERANGE, UNTOUCHED},
	{"340282366920938463463374607431768211456", -ERANGE, UNTOUCHED},
	{"99999999999999999999x", -EINVAL, UNTOUCHED},
	{"", -EINVAL, UNTOUCHED},
	{" 1", -EINVAL, UNTOUCHED},
	{"1 ", -EINVAL, UNTOUCHED},
	{"1\n", -EINVAL, UNTOUCHED},
	{"+1", -EINVAL, UNTOUCHED},
	{"-1", -EINVAL, UNTOUCHED},
	{"-0", -EINVAL, UNTOUCHED},
	{"1.0", -EINVAL, UNTOUCHED},
	{"1e3", -EINVAL, UNTOUCHED},
	{"1,000", -EINVAL, UNTOUCHED},
	{"0x10", -EINVAL, UNTOUCHED},
	{"/", -EINVAL, UNTOUCHED},
	{":", -EINVAL, UNTOUCHED},
	{"\xd9\xa1", -EINVAL, UNTOUCHED}, /* ARABIC-INDIC DIGIT ONE */
};

static const struct reading hexadecimal[] = {
	{"0", 0, 0},
	{"9aBcDeF", 0, 0x9abcdef},
	{"ffffffffffffffff", 0, UINT64_MAX},
	{"0FFFFFFFFFFFFFFFF", 0, UINT64_MAX},
	{"10000000000000000", -ERANGE, UNTOUCHED},
	{"g", -EINVAL, UNTOUCHED},
	{"@", -EINVAL, UNTOUCHED},
	{"`", -EINVAL, UNTOUCHED},
	{"0xf", -EINVAL, UNTOUCHED},
	{"", -EINVAL, UNTOUCHED},
};

static const struct reading code[] = {
	{"17", 0, 17},
	{"0x11", 0, 17},
	{"0X1f", 0, 31},
	{"010", 0, 10},
	{"08", 0, 8},
	{"0", 0, 0},
	{"0xffffffffffffffff", 0, UINT64_MAX},
	{"0x10000000000000000", -ERANGE, UNTOUCHED},
	{"18446744073709551616", -ERANGE, UNTOUCHED},
	{"0x", -EINVAL, UNTOUCHED},
	{"x1", -EINVAL, UNTOUCHED},
	{"ff", -EINVAL, UNTOUCHED},
	{"0x-1", -EINVAL, UNTOUCHED},
	{"0x0x1", -EINVAL, UNTOUCHED},
	{"-0x1", -EINVAL, UNTOUCHED},
	{"", -EINVAL, UNTOUCHED},
};

#define COUNT(array) (int)(sizeof(array) / sizeof(array[0]))

static void check_reading(const struct reading *want, int ret, uint64_t value)
{
	ck_assert_msg(ret == want->ret, "'%s' gives %d, not %d", want->text, ret, want->ret);
	ck_assert_msg(value == want->value, "'%s' is %llu", want->text, (unsigned long long)value);
}

START_TEST(decimal_digits)
{
	const struct reading *want = &decimal[_i];
	uint64_t value = UNTOUCHED;
	int ret = number_read(want->text, strlen(want->text), 10, &value);

	check_reading(want, ret, value);
}
END_TEST

START_TEST(hexadecimal_digits)
{
	const struct reading *want = &hexadecimal[_i];
	uint64_t value = UNTOUCHED;
	int ret = number_read(want->text, strlen(want->text), 16, &value);

	check_reading(want, ret, value);
}
END_TEST

START_TEST(as_code_writes_it)
{
	const struct reading *want = &code[_i];
	uint64_t value = UNTOUCHED;
	int ret = number_read_code(want->text, &value);

	check_reading(want, ret, value);
}
END_TEST

START_TEST(a_length_ends_a_number)
{
	uint64_t value = UNTOUCHED;

	ck_assert_int_eq(number_read("12:34", 2, 10, &value), 0);
	ck_assert_uint_eq(value, 12);
	ck_assert_int_eq(number_read("12:34", 3, 10, &value), -EINVAL);
	ck_assert_int_eq(number_read("12", 0, 10, &value), -EINVAL);
	/* A text that is shorter than it should be ends with what is no digit. */
	ck_assert_int_eq(number_read("12", 16, 16, &value), -EINVAL);
	ck_assert_uint_eq(value, 12);
}
END_TEST

static const struct {
	const char *text;
	int64_t least, most;
	int ret;
	int64_t value;
} signed_readings[] = {
	{"0", INT64_MIN, INT64_MAX, 0, 0},
	{"-0", INT64_MIN, INT64_MAX, 0, 0},
	{"-1", INT64_MIN, INT64_MAX, 0, -1},
	{"9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX},
	{"9223372036854775808", INT64_MIN, INT64_MAX, -ERANGE, UNTOUCHED},
	{"-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN},
	{"-9223372036854775809", INT64_MIN, INT64_MAX, -ERANGE, UNTOUCHED},
	{"18446744073709551615", INT64_MIN, INT64_MAX, -ERANGE, UNTOUCHED},
	{"-18446744073709551615", INT64_MIN, INT64_MAX, -ERANGE, UNTOUCHED},
	{"1", 1, 64, 0, 1},
	{"64", 1, 64, 0, 64},
	{"0", 1, 64, -ERANGE, UNTOUCHED},
	{"65", 1, 64, -ERANGE, UNTOUCHED},
	{"-1", 0, 64, -ERANGE, UNTOUCHED},
	{"-5", -5, -5, 0, -5},
	{"", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{"-", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{"--1", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{"+1", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{" 1", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{"- 1", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{"1-", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
	{"0x1", INT64_MIN, INT64_MAX, -EINVAL, UNTOUCHED},
};

START_TEST(within_limits_with_a_sign)
{
	int64_t value = UNTOUCHED;
	int ret = number_read_signed(signed_readings[_i].text, signed_readings[_i].least,
				     signed_readings[_i].most, &value);

	ck_assert_msg(ret == signed_readings[_i].ret, "'%s' gives %d", signed_readings[_i].text,
		      ret);
	ck_assert_int_eq(value, signed_readings[_i].value);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, decimal_digits, 0, COUNT(decimal));
	tcase_add_loop_test(tcase, hexadecimal_digits, 0, COUNT(hexadecimal));
	tcase_add_loop_test(tcase, as_code_writes_it, 0, COUNT(code));
	tcase_add_test(tcase, a_length_ends_a_number);
	tcase_add_loop_test(tcase, within_limits_with_a_sign, 0, COUNT(signed_readings));
}

int main(void)
{
	return suite_main("number", add_tests);
}
