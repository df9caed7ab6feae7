// SPDX-License-Identifier: MIT
/*
 * Signals: a verb notes the first ones and raises them when it ends, and a transfer is canceled by
 * one. Also numbers of bytes as people read them.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cli/frame/interrupt.h"
#include "runtime/cli/frame/transfer.h"
#include "suite.h"

static const int numbers[] = {SIGINT, SIGTERM};

/* The test framework has handlers of its own for these. */
static void reset(void)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

START_TEST(noted_then_raised)
{
	pid_t child = fork();
	int status;

	if (!child) {
		reset();
		interrupt_catch();
		if (interrupted())
			_exit(1);
		raise(numbers[_i]);
		if (!interrupted())
			_exit(2);
		interrupt_release();
		_exit(3);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), numbers[_i]);
}
END_TEST

START_TEST(the_third_ends_what_is_stuck)
{
	pid_t child = fork();
	int status;

	if (!child) {
		reset();
		interrupt_catch();
		raise(SIGINT);
		raise(SIGINT);
		if (!interrupted())
			_exit(1);
		raise(SIGINT);
		_exit(2);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
}
END_TEST

START_TEST(nothing_noted_nothing_raised)
{
	interrupt_catch();
	interrupt_release();
	ck_assert(!interrupted());
}
END_TEST

START_TEST(what_is_ignored_stays_ignored)
{
	signal(SIGINT, SIG_IGN);
	interrupt_catch();
	raise(SIGINT);
	ck_assert(!interrupted());
	interrupt_release();
	ck_assert(signal(SIGINT, SIG_DFL) == SIG_IGN);
}
END_TEST

START_TEST(a_transfer_is_cancelled_by_a_signal)
{
	const struct embeng_progress progress = {.what = "save", .done = 1, .total = 2};
	struct transfer patient = {.cancels = false}, hasty = {.cancels = true};

	reset();
	interrupt_catch();
	ck_assert_int_eq(transfer_progress(&hasty, &progress), 0);
	raise(SIGTERM);
	ck_assert_int_eq(transfer_progress(&patient, &progress), 0);
	ck_assert_int_ne(transfer_progress(&hasty, &progress), 0);
	/* Noted now: released, it would end this test. */
	signal(SIGTERM, SIG_IGN);
}
END_TEST

START_TEST(bytes_as_people_read_them)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1536, "1.5 KiB"},
		{1048524, "1023.9 KiB"},
		{1048575, "1.0 MiB"},
		{(uint64_t)5 << 30, "5.0 GiB"},
		{UINT64_MAX, "16.0 EiB"},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		char text[BYTES_TEXT];

		ck_assert_str_eq(bytes_text(cases[k].bytes, text), cases[k].text);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, noted_then_raised, 0, 2);
	tcase_add_test(tcase, the_third_ends_what_is_stuck);
	tcase_add_test(tcase, nothing_noted_nothing_raised);
	tcase_add_test(tcase, what_is_ignored_stays_ignored);
	tcase_add_test(tcase, a_transfer_is_cancelled_by_a_signal);
	tcase_add_test(tcase, bytes_as_people_read_them);
}

int main(void)
{
	return suite_main("interrupt", add);
}
