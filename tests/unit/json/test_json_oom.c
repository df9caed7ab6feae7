// SPDX-License-Identifier: MIT
/*
 * Each allocation fails once: of reading a document, of writing one, and of a save over a checkpoint.
 * A call that fails says -ENOMEM, nothing of it is left, and the checkpoint that was there is whole.
 */
#include "runtime/src/base/json_strict.h"
#include "checkpoint_help.h"
#include "json_help.h"
#include "failing_alloc.h"
#include "suite.h"

#define MOST 4096 /* allocations; a save has a few hundred */

/* With more names than are compared each with each, and a number that does not fit on the stack. */
static char *document_text(void)
{
	char *text = malloc(40000), *to = text;

	to += sprintf(to, "{");
	for (int i = 0; i < 500; i++)
		to += sprintf(to, "\"member%d\": [%d, \"\\u00e9\"], ", i, i);
	to += sprintf(to, "\"long\": 0.");
	for (int i = 0; i < 100; i++)
		to += sprintf(to, "5");
	sprintf(to, "}");
	return text;
}

START_TEST(reading)
{
	const struct place at = {.file = "DOCUMENT"};
	struct embeng_error error = {.size = sizeof(error)};
	char *text = document_text();
	bool failed = true;
	uint32_t nth;

	for (nth = 1; failed && nth < MOST; nth++) {
		const struct json *document = NULL;
		int ret;

		scarce_begin(nth);
		ret = json_parse_strict(text, strlen(text), &at, &document);
		failed = scarce_end();
		ck_assert_int_eq(ret, failed ? -ENOMEM : 0);
		ck_assert_uint_eq(json_length(document), failed ? 0 : 501);
		embeng_last_error(&error);
		if (failed)
			ck_assert_msg(!strncmp(error.text, "DOCUMENT: no memory to read ", 28),
				      "%s", error.text);
		json_free(document);
	}
	ck_assert(!failed);
	ck_assert_uint_gt(nth, 10);
	free(text);
}
END_TEST

START_TEST(writing)
{
	char *source = document_text(), *whole, *text;
	const struct json *document = must_read(source);
	bool failed = true;
	uint32_t nth;

	whole = written(document, JSON_LINES);
	for (nth = 1; failed && nth < MOST; nth++) {
		struct json_writer w;
		size_t length = 0;
		int ret;

		text = NULL;
		scarce_begin(nth);
		json_write_begin(&w, JSON_LINES);
		json_write_value(&w, NULL, document);
		ret = json_finish(&w, "DOCUMENT", &text, &length);
		failed = scarce_end();
		ck_assert_int_eq(ret, failed ? -ENOMEM : 0);
		if (failed) {
			ck_assert_ptr_null(text);
			expect_text("DOCUMENT: no memory to write JSON");
		}
	}
	ck_assert(!failed);
	ck_assert_uint_gt(nth, 4);
	ck_assert_str_eq(text, whole);
	free(text);
	free(whole);
	free(source);
	json_free(document);
}
END_TEST

/* -- a checkpoint -------------------------------------------------------- */

static void expect_state(const char *folder, const char *state)
{
	struct embeng_checkpoint_info info = {.size = sizeof(info)};
	struct embeng_checkpoint *c = NULL;

	help_expect_ok(embeng_checkpoint_open(folder, &c, NULL));
	help_expect_ok(embeng_checkpoint_verify(c, NULL, NULL));
	help_expect_ok(embeng_checkpoint_info(c, &info));
	ck_assert_str_eq(info.program_state, state);
	embeng_checkpoint_close(c);
}

static int save(struct embeng *e, const char *folder, const char *state)
{
	const struct embeng_save_options o = {.size = sizeof(o), .program_state = state};

	return embeng_save(e, folder, &o);
}

START_TEST(saving_over_a_checkpoint)
{
	const struct help_table tables[] = {{"words/\xc3\xa9", 5, 3, embeng_adam(0.1f)},
					    {"users", 7, 2, embeng_adagrad(0.5f)}};
	struct embeng *e = help_open(SMALL, tables, 2);
	char folder[HELP_PATH], before[32] = "{\"save\": 0}", now[32];
	bool failed = true;
	uint32_t nth;

	help_never_sync();
	folder_new(folder);
	help_fill(e, 1);
	help_expect_ok(save(e, folder, before));
	for (nth = 1; failed && nth < MOST; nth++) {
		int ret;

		snprintf(now, sizeof(now), "{\"save\": %u}", nth);
		scarce_begin(nth);
		ret = save(e, folder, now);
		failed = scarce_end();
		ck_assert_msg(ret == 0 || (failed && ret == -ENOMEM), "allocation %u: %d", nth,
			      ret);
		/* One that did without what it can do without is as good as any. */
		if (!ret)
			strcpy(before, now);
		expect_state(folder, before);
	}
	ck_assert(!failed);
	ck_assert_uint_gt(nth, 50);
	embeng_close(e);
	folder_remove(folder);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, reading);
	tcase_add_test(tcase, writing);
	tcase_add_test(tcase, saving_over_a_checkpoint);
}

int main(void)
{
	return suite_main("json_oom", add);
}
