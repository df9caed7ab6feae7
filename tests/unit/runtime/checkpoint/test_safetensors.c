// SPDX-License-Identifier: MIT
/* The header of a shard: written as the format says, read with nothing taken on trust. */
#define _GNU_SOURCE /* memmem */
#include <inttypes.h>

#include "runtime/src/checkpoint/open.h"
#include "runtime/src/checkpoint/safetensors.h"
#include "checkpoint_edit.h"
#include "suite.h"

static const struct safetensor wanted[] = {
	{.name = "t/a", .rows = 3, .dim = 2},
	{.name = "t/\"\\\xc3\xa9", .rows = 3, .dim = 2},
};

/* A whole file of these two; returns its bytes. */
static uint64_t make(struct safetensor *tensors, char **header, size_t *bytes)
{
	static const char *const metadata[][2] = {{"format", "embeng"}, {"first_row", "0"}};

	memcpy(tensors, wanted, sizeof(wanted));
	help_expect_ok(safetensors_header(tensors, 2, metadata, 2, header, bytes));
	return *bytes + 2 * 24;
}

START_TEST(a_header_is_what_the_format_says)
{
	static const char want[] =
		"{\"__metadata__\":{\"format\":\"embeng\",\"first_row\":\"0\"},"
		"\"t/a\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
		"\"t/\\\"\\\\\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[3,2],"
		"\"data_offsets\":[24,48]}}";
	struct safetensor tensors[2];
	uint64_t length;
	char *header;
	size_t bytes;

	make(tensors, &header, &bytes);
	ck_assert_uint_eq(bytes % 64, 0);
	memcpy(&length, header, sizeof(length));
	ck_assert_uint_eq(length, bytes - 8);
	ck_assert_int_eq(memcmp(header + 8, want, sizeof(want) - 1), 0);
	for (size_t i = 8 + sizeof(want) - 1; i < bytes; i++)
		ck_assert_int_eq(header[i], ' ');
	ck_assert_uint_eq(tensors[0].offset, bytes);
	ck_assert_uint_eq(tensors[1].offset, bytes + 24);
	free(header);
}
END_TEST

START_TEST(a_header_of_64_bit_sizes)
{
	struct safetensor t = {.name = "t/parameters", .rows = 1ull << 40, .dim = 130};
	char *header, text[64];
	size_t bytes;

	help_expect_ok(safetensors_header(&t, 1, NULL, 0, &header, &bytes));
	snprintf(text, sizeof(text), "\"data_offsets\":[0,%llu]", 130ull << 42);
	ck_assert_ptr_nonnull(memmem(header, bytes, text, strlen(text)));
	help_expect_ok(
		safetensors_check(header + 8, bytes - 8, bytes + (130ull << 42), "x", &t, 1));
	free(header);
}
END_TEST

START_TEST(what_was_written_is_read)
{
	struct safetensor tensors[2];
	uint64_t file, length;
	char *header;
	size_t bytes;

	file = make(tensors, &header, &bytes);
	help_expect_ok(safetensors_header_bytes(header, file, "x", &length));
	ck_assert_uint_eq(length, bytes - 8);
	help_expect_ok(safetensors_check(header + 8, length, file, "x", tensors, 2));
	free(header);
}
END_TEST

static int length_of(uint64_t length, uint64_t file)
{
	uint64_t bytes = 77;
	int ret = safetensors_header_bytes(&length, file, "FILE", &bytes);

	if (ret) {
		ck_assert_uint_eq(bytes, 77);
		expect_text("FILE: offset 0:");
	}
	return ret;
}

START_TEST(lengths_are_checked)
{
	ck_assert_int_eq(length_of(2, 10), 0);
	ck_assert_int_eq(length_of(2, 9), -EBADMSG);
	ck_assert_int_eq(length_of(0, 7), -EBADMSG);
	ck_assert_int_eq(length_of(UINT64_MAX, 100), -EBADMSG);
	ck_assert_int_eq(length_of(UINT64_MAX - 7, 100), -EBADMSG);
	ck_assert_int_eq(length_of(100000000, 1ull << 40), 0);
	ck_assert_int_eq(length_of(100000001, 1ull << 40), -EBADMSG);
}
END_TEST

#define A "\"t/a\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]}"

static const struct {
	const char *old, *new, *text;
} edits[] = {
	{"{\"__meta", " {\"__meta", "does not begin with {"},
	{"{\"__meta", "[\"__meta", "does not begin with {"},
	{"}}", "}", "no JSON"},
	{"}}", "}}x", "no JSON"},
	{"}}", "}}{}", "no JSON"},
	{"\"t/a\"", "\"t/\xff\"", "no JSON"},
	{"\"t/a\"", "\"t/b\"", "\"t/a\" is not an object"},
	{A, A "," A, "two members of the same name"},
	{A, A ",\"t/c\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[24,24]}",
	 "has 3 tensors, the index says 2"},
	{A, "\"t/a\":1", "\"t/a\" is not an object"},
	{"\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0",
	 "\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[0", "of type F16, not F32"},
	{"\"dtype\":\"F32\",", "", "\"dtype\" is not a text"},
	{"\"shape\":[3,2],", "", "\"shape\" is not an array"},
	{"\"shape\":[3,2]", "\"shape\":[3]", "\"shape\" is not two whole numbers"},
	{"\"shape\":[3,2]", "\"shape\":[3,2,1]", "\"shape\" is not two whole numbers"},
	{"\"shape\":[3,2]", "\"shape\":[-3,2]", "\"shape\" is not two whole numbers"},
	{"\"shape\":[3,2]", "\"shape\":[3,2.0]", "\"shape\" is not two whole numbers"},
	{"\"shape\":[3,2]", "\"shape\":[2,3]", "is [2, 3], the index says [3, 2]"},
	{"\"shape\":[3,2]", "\"shape\":[3,3]", "is [3, 3], the index says [3, 2]"},
	{"\"shape\":[3,2]", "\"shape\":[2,2]", "is [2, 2], the index says [3, 2]"},
	{"\"shape\":[3,2]", "\"shape\":[3,18446744073709551616]", "\"shape\" is not two"},
	{",\"data_offsets\":[0,24]", "", "\"data_offsets\" is not an array"},
	{"[0,24]", "[0]", "\"data_offsets\" is not two whole numbers"},
	{"[0,24]", "[0,\"24\"]", "\"data_offsets\" is not two whole numbers"},
	{"[0,24]", "[0,20]", "lies at 0 to 20"},
	{"[0,24]", "[4,24]", "lies at 4 to 24"},
	{"[24,48]", "[20,44]", "lies at 20 to 44"},
	{"[24,48]", "[28,52]", "lies at 28 to 52"},
	{"\"__metadata__\":{", "\"__metadata__\":1,\"x\":{", "\"__metadata__\" is not an object"},
	{"\"first_row\":\"0\"", "\"first_row\":0", "\"first_row\", which is not a text"},
	{"\"t/a\":{", "\"t/a\":{\"shape\":[3,2],", "two members of the same name"},
};

START_TEST(each_check_fails_by_itself)
{
	static char text[EDIT_BYTES];
	struct safetensor tensors[2];
	char *header;
	size_t bytes;
	int ret;

	make(tensors, &header, &bytes);
	memcpy(text, header + 8, bytes - 8);
	text[bytes - 8] = '\0';
	free(header);
	edit_replace(text, edits[_i].old, edits[_i].new);
	/* The data stay where they were, so that nothing else is wrong. */
	for (size_t length = strlen(text); length < bytes - 8; length++)
		strcat(text, " ");
	while (strlen(text) > bytes - 8 && text[strlen(text) - 1] == ' ')
		text[strlen(text) - 1] = '\0';
	bytes = 8 + strlen(text);
	for (int i = 0; i < 2; i++)
		tensors[i].offset = bytes + 24 * (uint64_t)i;
	ret = safetensors_check(text, bytes - 8, bytes + 48, "FILE", tensors, 2);
	ck_assert_int_eq(ret, -EBADMSG);
	expect_text("FILE: ");
	expect_text(edits[_i].text);
}
END_TEST

/* Holes, overlap, a file that goes on: the header agrees with the index in each. */
static void expect_cover(uint64_t second, uint64_t file_bytes, const char *text)
{
	struct safetensor tensors[2];
	char *header, offsets[64], *at;
	size_t bytes;

	make(tensors, &header, &bytes);
	snprintf(offsets, sizeof(offsets), "[%" PRIu64 ",%" PRIu64 "]", second, second + 24);
	at = memmem(header, bytes, "[24,48]", 7);
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_eq(strlen(offsets), 7);
	memcpy(at, offsets, 7);
	tensors[1].offset = bytes + second;
	help_expect(
		safetensors_check(header + 8, bytes - 8, bytes + file_bytes, "FILE", tensors, 2),
		-EBADMSG, text);
	free(header);
}

START_TEST(no_holes_no_overlap_no_rest)
{
	expect_cover(28, 52, "where the data before it end");
	expect_cover(20, 44, "where the data before it end");
	expect_cover(24, 52, "the tensors end at byte");
	expect_cover(24, 47, "the tensors end at byte");
}
END_TEST

START_TEST(no_header_at_all)
{
	help_expect(safetensors_check("", 0, 8, "FILE", NULL, 0), -EBADMSG,
		    "does not begin with {");
}
END_TEST

START_TEST(names_of_shards)
{
	static const char *const others[] = {"",
					     "embeng",
					     "embeng-",
					     "embeng-1-0123456789abcdef-00000000",
					     "index.json",
					     "embeng-1-0123456789abcdef-00000000.safetensors.bak",
					     "embeng-1-0123456789abcde-00000000.safetensors",
					     "embeng-1-0123456789ABCDEF-00000000.safetensors",
					     "embeng-x-0123456789abcdef-00000000.safetensors",
					     "xembeng-1-0123456789abcdef-00000000.safetensors",
					     "embeng-1-0123456789abcdef-0000000.safetensors",
					     "model.safetensors"};
	char name[SHARD_NAME_SIZE];

	shard_name(name, UINT64_MAX, 0xfedcba9876543210u, 123456789012u);
	ck_assert_str_eq(name,
			 "embeng-18446744073709551615-fedcba9876543210-123456789012.safetensors");
	ck_assert(is_shard_name(name) && !is_temporary_name(name));
	index_temporary_name(name, 1);
	ck_assert_str_eq(name, "embeng-0000000000000001.index.tmp");
	ck_assert(is_temporary_name(name) && !is_shard_name(name));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ck_assert(!is_shard_name(others[i]) && !is_temporary_name(others[i]));
}
END_TEST

/* Every bit of a shard: found at open where it is the header's, else when checked. */
START_TEST(each_flipped_bit_of_a_shard_is_found)
{
	static char text[EDIT_BYTES];
	char folder[HELP_PATH];
	size_t length, at_open = 0, at_verify = 0;
	struct embeng_checkpoint *c = NULL;
	char name[SHARD_NAME_SIZE];

	folder_new(folder);
	edit_save(folder);
	c = help_checkpoint(folder);
	strcpy(name, c->index.files[0].name);
	embeng_checkpoint_close(c);
	length = edit_read(folder, name, text);
	for (size_t bit = 0; bit < 8 * length; bit++) {
		text[bit / 8] ^= (char)(1 << bit % 8);
		edit_write(folder, name, text, length);
		text[bit / 8] ^= (char)(1 << bit % 8);
		if (embeng_checkpoint_open(folder, &c, NULL)) {
			at_open++;
			continue;
		}
		at_verify += embeng_checkpoint_verify(c, NULL, NULL) == -EBADMSG;
		embeng_checkpoint_close(c);
	}
	folder_remove(folder);
	ck_assert_uint_eq(at_open + at_verify, 8 * length);
	ck_assert_uint_ge(at_verify, 8 * 64);
}
END_TEST

static void add(TCase *tcase)
{
	help_never_sync();
	tcase_add_test(tcase, a_header_is_what_the_format_says);
	tcase_add_test(tcase, a_header_of_64_bit_sizes);
	tcase_add_test(tcase, what_was_written_is_read);
	tcase_add_test(tcase, lengths_are_checked);
	tcase_add_loop_test(tcase, each_check_fails_by_itself, 0, sizeof(edits) / sizeof(*edits));
	tcase_add_test(tcase, no_holes_no_overlap_no_rest);
	tcase_add_test(tcase, no_header_at_all);
	tcase_add_test(tcase, names_of_shards);
	tcase_add_test(tcase, each_flipped_bit_of_a_shard_is_found);
}

int main(void)
{
	return suite_main("safetensors", add);
}
