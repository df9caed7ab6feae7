// SPDX-License-Identifier: MIT
/* Rows as .npy and as text, byte by byte. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/checkpoint/rows_text.h"
#include "suite.h"

#define FRONT "\x93NUMPY\x01\0"

/* The header's length as the file says it, checked to end in a newline at a multiple of 64. */
static size_t header_of(int64_t rows, int64_t dim, char text[256])
{
	char bytes[512] = "";
	FILE *out = fmemopen(bytes, sizeof(bytes), "w");
	size_t length;

	ck_assert_int_eq(npy_header(out, rows, dim), 0);
	fclose(out);
	ck_assert_mem_eq(bytes, FRONT, 8);
	length = (unsigned char)bytes[8] + 256u * (unsigned char)bytes[9];
	ck_assert_uint_eq((10 + length) % 64, 0);
	ck_assert_int_eq(bytes[10 + length - 1], '\n');
	ck_assert_int_eq(bytes[10 + length], '\0');
	memcpy(text, bytes + 10, length);
	text[length] = '\0';
	return length;
}

START_TEST(npy_headers)
{
	static const struct {
		int64_t rows, dim;
		const char *text;
	} cases[] = {
		{3, 4, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }"},
		{0, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1), }"},
		{INT64_MAX, 1024,
		 "{'descr': '<f4', 'fortran_order': False, "
		 "'shape': (9223372036854775807, 1024), }"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		size_t shown = strlen(cases[k].text), length;
		char text[256];

		length = header_of(cases[k].rows, cases[k].dim, text);
		ck_assert_mem_eq(text, cases[k].text, shown);
		ck_assert_uint_eq(strspn(text + shown, " "), length - shown - 1);
	}
}
END_TEST

/* Lengths around the alignment: never a header that is cut, never 64 spaces. */
START_TEST(npy_padding)
{
	int64_t rows = 1;

	for (int digits = 1; digits < 19; digits++, rows *= 10) {
		char text[256];
		size_t length = header_of(rows, 1, text);

		ck_assert_uint_eq(length, 118);
		ck_assert_ptr_nonnull(strstr(text, ", 1), }"));
	}
}
END_TEST

START_TEST(npy_is_little_endian)
{
	float data[] = {1.0f, -2.5f, 0x1p-149f};
	unsigned char bytes[13] = "";
	FILE *out = fmemopen(bytes, sizeof(bytes), "w");

	ck_assert_int_eq(npy_floats(out, data, 3), 0);
	fclose(out);
	ck_assert_mem_eq(bytes, "\0\0\x80\x3f\0\0\x20\xc0\x01\0\0\0", 12);
}
END_TEST

START_TEST(text_has_a_row_a_line)
{
	const float data[] = {0.1f, -2.5f, 1.0f / 3, INFINITY, 16777216, -0.0f};
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	ck_assert_int_eq(text_rows(out, data, 2, 3), 0);
	fclose(out);
	ck_assert_str_eq(text, "0.100000001 -2.5 0.333333343\ninf 16777216 -0\n");
	free(text);
}
END_TEST

START_TEST(text_gives_the_same_bits_back)
{
	uint32_t bits = 0x12345678;

	for (int k = 0; k < 10000; k++) {
		char *text;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		float value, back;

		bits = bits * 1664525u + 1013904223u;
		memcpy(&value, &bits, sizeof(value));
		if (isnan(value))
			value = 0;
		ck_assert_int_eq(text_rows(out, &value, 1, 1), 0);
		fclose(out);
		back = strtof(text, NULL);
		ck_assert_mem_eq(&back, &value, sizeof(value));
		free(text);
	}
}
END_TEST

/* A stream that takes nothing: each writer says why. */
START_TEST(a_full_stream)
{
	float data[] = {1};
	FILE *full = fopen("/dev/full", "w");

	setvbuf(full, NULL, _IONBF, 0);
	ck_assert_int_eq(npy_header(full, 1, 1), -ENOSPC);
	ck_assert_int_eq(npy_floats(full, data, 1), -ENOSPC);
	ck_assert_int_eq(text_rows(full, data, 1, 1), -ENOSPC);
	fclose(full);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, npy_headers);
	tcase_add_test(tcase, npy_padding);
	tcase_add_test(tcase, npy_is_little_endian);
	tcase_add_test(tcase, text_has_a_row_a_line);
	tcase_add_test(tcase, text_gives_the_same_bits_back);
	tcase_add_test(tcase, a_full_stream);
}

int main(void)
{
	return suite_main("rows_text", add);
}
