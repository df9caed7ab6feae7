// SPDX-License-Identifier: MIT
/* The last error of a thread: its sentence and code, cut where it is too long. */
#include <pthread.h>

#include "test_model.h"

START_TEST(test_sentence_and_code)
{
	struct embeng_error error = {.size = sizeof(error)};

	ck_assert_int_eq(error_set(-ERANGE, 15, "feature %s: id %d", "clicks", 99), -ERANGE);
	embeng_last_error(&error);
	ck_assert_uint_eq(error.size, sizeof(error));
	ck_assert_int_eq(error.code, -ERANGE);
	ck_assert_uint_eq(error.status, 15);
	ck_assert_str_eq(error.text, "feature clicks: id 99");
	ck_assert_int_eq(fail(-EINVAL, "other"), -EINVAL);
	embeng_last_error(&error);
	ck_assert_uint_eq(error.status, 0);
}
END_TEST

START_TEST(test_long_sentence_is_cut_visibly)
{
	struct embeng_error error = {.size = sizeof(error)};
	char text[2 * EMBENG_ERROR_TEXT];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	fail(-EINVAL, "%s", text);
	embeng_last_error(&error);
	ck_assert_uint_eq(strlen(error.text), EMBENG_ERROR_TEXT - 1);
	ck_assert_str_eq(error.text + EMBENG_ERROR_TEXT - 4, "...");
	text[EMBENG_ERROR_TEXT - 1] = '\0';
	fail(-EINVAL, "%s", text);
	embeng_last_error(&error);
	ck_assert_str_eq(error.text, text);
}
END_TEST

START_TEST(test_cut_falls_between_characters)
{
	struct embeng_error error = {.size = sizeof(error)};
	char text[2 * EMBENG_ERROR_TEXT] = "";

	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 3);
	for (int shift = 0; shift < 2; shift++) {
		size_t length;

		fail(-EINVAL, "%s%s", shift ? "x" : "", text);
		embeng_last_error(&error);
		length = strlen(error.text);
		ck_assert_str_eq(error.text + length - 3, "...");
		ck_assert_uint_eq((unsigned char)error.text[length - 4], 0xa9);
	}
}
END_TEST

START_TEST(test_last_sentence_may_be_an_argument)
{
	struct embeng_error error = {.size = sizeof(error)};

	fail(-EINVAL, "inner");
	embeng_last_error(&error);
	fail(-EINVAL, "outer: %s", error.text);
	embeng_last_error(&error);
	ck_assert_str_eq(error.text, "outer: inner");
}
END_TEST

START_TEST(test_size_of_the_caller_counts)
{
	union {
		struct embeng_error error;
		unsigned char bytes[sizeof(struct embeng_error) + 16];
	} out;
	const size_t text_at = offsetof(struct embeng_error, text);

	fail(-ENOENT, "abcdefgh");
	memset(&out, 0x5a, sizeof(out));
	out.error.size = text_at + 4;
	embeng_last_error(&out.error);
	ck_assert_int_eq(out.error.code, -ENOENT);
	ck_assert_str_eq(out.error.text, "abc");
	ck_assert_uint_eq(out.bytes[text_at + 4], 0x5a);
	memset(&out, 0x5a, sizeof(out));
	out.error.size = sizeof(out);
	embeng_last_error(&out.error);
	ck_assert_str_eq(out.error.text, "abcdefgh");
	ck_assert_uint_eq(out.bytes[sizeof(struct embeng_error)], 0x5a);
	ck_assert_uint_eq(out.error.size, sizeof(out));
	memset(&out, 0x5a, sizeof(out));
	out.error.size = text_at - 1;
	embeng_last_error(&out.error);
	ck_assert_uint_eq(out.bytes[sizeof(size_t)], 0x5a);
	embeng_last_error(NULL);
}
END_TEST

static void *other_thread(void *arg)
{
	struct embeng_error *error = arg;

	embeng_last_error(error);
	fail(-EIO, "of the other thread");
	return NULL;
}

START_TEST(test_threads_have_their_own)
{
	struct embeng_error error = {.size = sizeof(error), .code = 1, .text = "x"};
	pthread_t thread;

	fail(-EINVAL, "of this thread");
	ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, &error), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(error.code, 0);
	ck_assert_str_eq(error.text, "");
	embeng_last_error(&error);
	ck_assert_str_eq(error.text, "of this thread");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		test_sentence_and_code,
		test_long_sentence_is_cut_visibly,
		test_cut_falls_between_characters,
		test_last_sentence_may_be_an_argument,
		test_size_of_the_caller_counts,
		test_threads_have_their_own,
	};

	return run_tests("error", tests, COUNT(tests));
}
