// SPDX-License-Identifier: MIT
/* Headers of tar members: each field, and what is no header. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "runtime/src/checkpoint/tar.h"
#include "suite.h"

static struct tar_member file_of(const char *name, uint64_t bytes)
{
	struct tar_member m = {.bytes = bytes, .kind = TAR_FILE};

	strcpy(m.name, name);
	return m;
}

/* Puts the sum right after a test changed a field. */
static void seal(char block[TAR_BLOCK])
{
	unsigned int sum = 0;

	memset(block + 148, ' ', 8);
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 7, "%06o", sum);
	block[155] = ' ';
}

START_TEST(sizes_of_any_length)
{
	const uint64_t sizes[] = {0,	      1,	511, 512, 077777777777, 0100000000000,
				  1ull << 40, INT64_MAX};
	char block[TAR_BLOCK];
	struct tar_member m = file_of("index.json", sizes[_i]), back;

	tar_write_header(&m, block);
	ck_assert_ptr_null(tar_read_header(block, &back));
	ck_assert_uint_eq(back.bytes, sizes[_i]);
	ck_assert_str_eq(back.name, "index.json");
	ck_assert_int_eq(back.kind, TAR_FILE);
	ck_assert_uint_eq((sizes[_i] + tar_padding(sizes[_i])) % TAR_BLOCK, 0);
	ck_assert_uint_lt(tar_padding(sizes[_i]), TAR_BLOCK);
}
END_TEST

/* As POSIX has them, field by field. */
START_TEST(the_bytes_of_a_header)
{
	struct tar_member m = file_of("a", 01234);
	char block[TAR_BLOCK];

	tar_write_header(&m, block);
	ck_assert_str_eq(block, "a");
	ck_assert_str_eq(block + 100, "0000644");
	ck_assert_str_eq(block + 108, "0000000");
	ck_assert_str_eq(block + 124, "00000001234");
	ck_assert_str_eq(block + 136, "02263523000");
	ck_assert_int_eq(block[156], '0');
	ck_assert_int_eq(memcmp(block + 257,
				"ustar\0"
				"00",
				8),
			 0);
	ck_assert(tar_all_zero(block + 345, 167));
}
END_TEST

START_TEST(each_bit_of_a_header_counts)
{
	struct tar_member m = file_of("index.json", 77), back;
	char block[TAR_BLOCK];

	tar_write_header(&m, block);
	for (size_t bit = 0; bit < 8 * TAR_BLOCK; bit++) {
		block[bit / 8] ^= (char)(1 << bit % 8);
		ck_assert_msg(tar_read_header(block, &back), "bit %zu", bit);
		block[bit / 8] ^= (char)(1 << bit % 8);
	}
	ck_assert_ptr_null(tar_read_header(block, &back));
}
END_TEST

static void expect_wrong(char block[TAR_BLOCK], const char *text)
{
	struct tar_member m;
	const char *wrong;

	seal(block);
	wrong = tar_read_header(block, &m);
	ck_assert_ptr_nonnull(wrong);
	ck_assert_ptr_nonnull(strstr(wrong, text));
}

START_TEST(what_is_no_header)
{
	struct tar_member m = file_of("a", 5);
	char block[TAR_BLOCK];

	tar_write_header(&m, block);
	block[124] = 'x';
	expect_wrong(block, "size that is no number");
	/* Nine bytes of a number, and one that is negative. */
	tar_write_header(&m, block);
	memset(block + 124, 0, 12);
	block[124] = (char)0x80;
	block[127] = 1;
	expect_wrong(block, "size that is no number");
	block[127] = 0;
	block[128] = (char)0x80;
	expect_wrong(block, "size that is no number");
	tar_write_header(&m, block);
	memcpy(block + 257, "vstar", 5);
	expect_wrong(block, "tar archive");
	memset(block, 'a', TAR_BLOCK);
	expect_wrong(block, "tar archive");
}
END_TEST

START_TEST(names_and_kinds)
{
	static const struct {
		const char *in, *out;
		char type;
		enum tar_kind kind;
	} cases[] = {{"./index.json", "index.json", '0', TAR_FILE},
		     {"././index.json", "index.json", '\0', TAR_FILE},
		     {"x.ckpt/index.json", "", '0', TAR_FILE},
		     {"/index.json", "", '0', TAR_FILE},
		     {"../index.json", "", '0', TAR_FILE},
		     {"./", "", '5', TAR_FOLDER},
		     {"a", "a", 'x', TAR_NOTE},
		     {"a", "a", 'g', TAR_NOTE_OF_ALL},
		     {"a", "a", '2', TAR_OTHER},
		     {"a", "a", 'L', TAR_OTHER}};
	struct tar_member m = file_of("", 9);
	char block[TAR_BLOCK];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		tar_write_header(&m, block);
		strcpy(block, cases[i].in);
		block[156] = cases[i].type;
		seal(block);
		ck_assert_ptr_null(tar_read_header(block, &m));
		ck_assert_str_eq(m.name, cases[i].out);
		ck_assert_int_eq(m.kind, cases[i].kind);
		ck_assert_uint_eq(m.bytes, cases[i].kind == TAR_FOLDER ? 0 : 9);
		m = file_of("", 9);
	}
	/* All hundred bytes are the name; with a prefix it is another one; GNU's magic has none. */
	tar_write_header(&m, block);
	memset(block, 'n', 100);
	seal(block);
	ck_assert_ptr_null(tar_read_header(block, &m));
	ck_assert_uint_eq(strlen(m.name), 100);
	block[345] = 'p';
	seal(block);
	ck_assert_ptr_null(tar_read_header(block, &m));
	ck_assert_str_eq(m.name, "");
	memcpy(block + 257, "ustar  ", 8);
	seal(block);
	ck_assert_ptr_null(tar_read_header(block, &m));
	ck_assert_uint_eq(strlen(m.name), 100);
}
END_TEST

START_TEST(records_of_notes)
{
	static const struct {
		const char *text, *comment, *wrong;
	} cases[] = {{"", NULL, NULL},
		     {"13 comment=x\n", "x", NULL},
		     {"12 comment=\n", "", NULL},
		     {"20 mtime=1234567.89\n15 comment=abc\n", "abc", NULL},
		     {"11 path=ab\n", NULL, "renames"},
		     {"10 size=1\n", NULL, "renames"},
		     {"14 linkpath=a\n", NULL, "renames"},
		     {"22 GNU.sparse.major=1\n", NULL, "renames"},
		     {"9 paths=\n", NULL, NULL},
		     {"13 comment=x", NULL, "length"},
		     {"14 comment=x\n", NULL, "length"},
		     {"12 comment=x\n", NULL, "length"},
		     {"99999999999999999999 a=\n", NULL, "length"},
		     {" comment=x\n", NULL, "length"},
		     {"-3 a=\n", NULL, "length"},
		     {"4 a\n", NULL, "without a value"},
		     {"3 \n", NULL, "length"},
		     {"0 ", NULL, "length"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *comment = NULL, *wrong;
		uint64_t bytes = 0;

		wrong = tar_check_note(cases[i].text, strlen(cases[i].text), &comment, &bytes);
		ck_assert_msg(!wrong == !cases[i].wrong, "%s: %s", cases[i].text, wrong);
		if (wrong)
			ck_assert_ptr_nonnull(strstr(wrong, cases[i].wrong));
		if (!cases[i].comment)
			continue;
		ck_assert_ptr_nonnull(comment);
		ck_assert_uint_eq(bytes, strlen(cases[i].comment));
		ck_assert_int_eq(memcmp(comment, cases[i].comment, bytes), 0);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, sizes_of_any_length, 0, 8);
	tcase_add_test(tcase, the_bytes_of_a_header);
	tcase_add_test(tcase, each_bit_of_a_header_counts);
	tcase_add_test(tcase, what_is_no_header);
	tcase_add_test(tcase, names_and_kinds);
	tcase_add_test(tcase, records_of_notes);
}

int main(void)
{
	return suite_main("tar", add);
}
