// SPDX-License-Identifier: MIT
/*
 * The record of a handle's commands: what stands in its file, which events are kept when there are
 * too many, how several handles share a file, and which files are refused.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/tracer.h"
#include "embeng.h"
#include "suite.h"

#define KEPT 65536u

static char path[] = "/tmp/embeng-tracer-XXXXXX";
static const struct tracer_queue queue = {.number = 3, .kind = EMBENG_QUEUE_INPUT};

static void set_up(void)
{
	close(mkstemp(path));
	setenv("EMBENG_TRACE", path, 1);
}

static void tear_down(void)
{
	unlink(path);
	strcpy(strrchr(path, '-'), "-XXXXXX");
}

static struct tracer *open_tracer(void)
{
	struct tracer *t = NULL;

	ck_assert_int_eq(tracer_open("soft:cores=1", &t), 0);
	ck_assert_ptr_nonnull(t);
	return t;
}

static void note_lookup(struct tracer *t, uint32_t index)
{
	const struct embeng_cmd cmd = {
		.opcode = EMBENG_OP_LOOKUP, .cookie = 7, .step = index + 1, .after = 5};

	tracer_note_command(t, &queue, index, &cmd, 12000000034);
}

static void note_done(struct tracer *t, uint32_t index)
{
	const struct embeng_cqe cqe = {.cookie = 7,
				       .status = EMBENG_STATUS_ABORTED,
				       .flags = EMBENG_CQE_DONE,
				       .index = index,
				       .timestamp = 99,
				       .step = index + 1};

	tracer_note_completion(t, &queue, &cqe);
}

/* Reads the file; the caller frees it. */
static char *read_record(void)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_gt(getdelim(&text, &size, 0, file), 0);
	fclose(file);
	return text;
}

/* Looks at one line at a time: under ASan, strstr() first measures all of the text that is left. */
static size_t count_lines(const char *text, const char *part)
{
	const char *limit = text + strlen(text);
	size_t count = 0;

	for (const char *end; (end = memchr(text, '\n', (size_t)(limit - text))); text = end + 1)
		count += !!memmem(text, (size_t)(end - text), part, strlen(part));
	return count;
}

START_TEST(events_are_those_of_the_driver)
{
	struct tracer *t = open_tracer();
	char expected[512], *text, *completion;

	note_lookup(t, 41);
	note_done(t, 41);
	ck_assert_int_eq(tracer_close(t), 0);
	text = read_record();
	snprintf(expected, sizeof(expected),
		 "# embeng trace 1\n"
		 "# context 1: process %d, device soft:cores=1\n"
		 "embeng-%d [000] ..... 12.000000034: embeng_command: context=1 queue=3 kind=1 "
		 "index=41 opcode=%d cookie=0x7 step=42 after=5\n",
		 (int)getpid(), (int)getpid(), EMBENG_OP_LOOKUP);
	ck_assert_int_eq(strncmp(text, expected, strlen(expected)), 0);
	completion = strstr(text, ": embeng_complete: ");
	ck_assert_ptr_nonnull(completion);
	snprintf(expected, sizeof(expected),
		 ": embeng_complete: context=1 queue=3 cookie=0x7 status=%d flags=%d index=41 "
		 "step=42 device_ns=99\n",
		 EMBENG_STATUS_ABORTED, EMBENG_CQE_DONE);
	ck_assert_str_eq(completion, expected);
	free(text);
}
END_TEST

START_TEST(the_newest_events_are_kept)
{
	struct tracer *t = open_tracer();
	char *text;

	for (uint32_t i = 0; i < KEPT + 3; i++)
		note_lookup(t, i);
	ck_assert_int_eq(tracer_close(t), 0);
	text = read_record();
	ck_assert_ptr_nonnull(strstr(text, "\nCPU:0 [LOST 3 EVENTS]\n"));
	ck_assert_uint_eq(count_lines(text, ": embeng_command: "), KEPT);
	ck_assert_ptr_null(strstr(text, " index=2 "));
	ck_assert_ptr_nonnull(strstr(text, " index=3 "));
	ck_assert_ptr_nonnull(strstr(text, " index=65538 "));
	free(text);
}
END_TEST

START_TEST(each_handle_is_a_context)
{
	struct tracer *first = open_tracer(), *second = open_tracer();
	char *text;

	note_lookup(first, 1);
	note_lookup(second, 2);
	ck_assert_int_eq(tracer_close(second), 0);
	ck_assert_int_eq(tracer_close(first), 0);
	text = read_record();
	ck_assert_uint_eq(count_lines(text, "# embeng trace 1"), 1);
	ck_assert_ptr_nonnull(strstr(text, "context=1 queue=3 kind=1 index=2 "));
	ck_assert_ptr_nonnull(strstr(text, "context=2 queue=3 kind=1 index=1 "));
	free(text);
}
END_TEST

/* A process that exits with an open handle writes it; a child of a fork does not write its parent's. */
START_TEST(exiting_writes_what_is_open)
{
	pid_t child = fork(), grandchild;
	struct tracer *t;
	char *text;
	int status;

	if (!child) {
		t = open_tracer();
		note_lookup(t, 1);
		grandchild = fork();
		if (!grandchild)
			exit(0);
		waitpid(grandchild, NULL, 0);
		note_lookup(t, 2);
		exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	text = read_record();
	ck_assert_uint_eq(count_lines(text, "# context "), 1);
	ck_assert_uint_eq(count_lines(text, ": embeng_command: "), 2);
	free(text);
}
END_TEST

static void check_refused(int code, const char *words)
{
	struct tracer *t = (struct tracer *)&queue;
	struct embeng_error error = EMBENG_INIT(embeng_error);

	ck_assert_int_eq(tracer_open("soft", &t), code);
	ck_assert_ptr_null(t);
	embeng_last_error(&error);
	ck_assert_msg(strstr(error.text, words) && strstr(error.text, "EMBENG_TRACE"), "%s",
		      error.text);
}

START_TEST(other_files_are_left_alone)
{
	FILE *file = fopen(path, "w");
	char *text;

	fputs("a diary\n", file);
	fclose(file);
	check_refused(-EBADMSG, "something else than a trace");
	text = read_record();
	ck_assert_str_eq(text, "a diary\n");
	free(text);
	setenv("EMBENG_TRACE", "/dev/null", 1);
	check_refused(-EINVAL, "not a regular file");
	setenv("EMBENG_TRACE", "/nowhere/x", 1);
	check_refused(-ENOENT, "/nowhere/x: No such file");
}
END_TEST

START_TEST(nothing_is_recorded_unasked)
{
	struct tracer *t = (struct tracer *)&queue;

	unsetenv("EMBENG_TRACE");
	ck_assert_int_eq(tracer_open("soft", &t), 0);
	ck_assert_ptr_null(t);
	ck_assert_int_eq(tracer_close(t), 0);
}
END_TEST

static void add(TCase *tc)
{
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, events_are_those_of_the_driver);
	tcase_add_test(tc, the_newest_events_are_kept);
	tcase_add_test(tc, each_handle_is_a_context);
	tcase_add_test(tc, exiting_writes_what_is_open);
	tcase_add_test(tc, other_files_are_left_alone);
	tcase_add_test(tc, nothing_is_recorded_unasked);
}

int main(void)
{
	return suite_main("tracer", add);
}
