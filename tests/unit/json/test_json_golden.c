// SPDX-License-Identifier: MIT
/*
 * The checkpoints of tests/golden, which json-c wrote: the same bytes are written of them today, so
 * that a checkpoint's bytes do not tell which release saved it.
 */
#include "runtime/src/checkpoint/index.h"
#include "checkpoint_help.h"
#include "json_help.h"
#include "suite.h"

static const char *const folders[] = {"tests/golden/checkpoint", "tests/golden/checkpoint-mod"};

static char *read_file(const char *folder, const char *name, size_t *length)
{
	char *path = file_path(folder, name), *text;

	help_expect_ok(file_read_whole(path, INDEX_BYTES_MAX, &text, length));
	free(path);
	return text;
}

static void expect_same_header(const char *folder, const char *name)
{
	size_t length;
	char *whole = read_file(folder, name, &length), *header, *again;
	const struct json *document;
	uint64_t bytes;

	memcpy(&bytes, whole, sizeof(bytes));
	ck_assert_uint_lt(bytes, length);
	header = whole + sizeof(bytes);
	while (header[bytes - 1] == ' ')
		bytes--;
	header[bytes] = '\0';
	document = must_read(header);
	again = written(document, JSON_COMPACT);
	ck_assert_str_eq(again, header);
	json_free(document);
	free(again);
	free(whole);
}

START_TEST(the_same_bytes_are_written)
{
	const char *root = getenv("EMBENG_SOURCE_ROOT");
	const struct json *document;
	size_t length;
	struct index index = {0};
	char *folder, *old, *new;

	ck_assert_msg(root != NULL, "EMBENG_SOURCE_ROOT must name the source tree");
	folder = file_path(root, folders[_i]);
	old = read_file(folder, INDEX_NAME, &length);
	help_expect_ok(index_parse(old, length, INDEX_NAME, &index));
	ck_assert_uint_gt(index.file_count, 4);
	/* The document, since an index that is written today says more than those of then. */
	document = must_read(old);
	new = written(document, JSON_LINES);
	json_free(document);
	ck_assert_str_eq(new, old);
	for (size_t i = 0; i < index.file_count; i++)
		expect_same_header(folder, index.files[i].name);
	index_free(&index);
	free(new);
	free(old);
	free(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_same_bytes_are_written, 0,
			    (int)(sizeof(folders) / sizeof(folders[0])));
}

int main(void)
{
	return suite_main("json_golden", add);
}
