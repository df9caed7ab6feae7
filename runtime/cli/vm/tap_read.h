/* SPDX-License-Identifier: MIT */
/*
 * Reads the Test Anything Protocol, versions 12 to 14, out of what a program prints. Lines that are
 * no part of it may stand anywhere in between.
 */
#ifndef CLI_VM_TAP_READ_H
#define CLI_VM_TAP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAP_LINE 4096u	      /* bytes of a line that are looked at */
#define TAP_CASES (1u << 20)  /* tests that are kept */
#define TAP_WORDS (64u << 10) /* bytes of diagnostics that are kept of a test */
#define TAP_OUTPUT (1u << 20) /* bytes of the whole output that are kept */

/* TAP_PASSED, TAP_FAILED; TAP_SKIPPED: was not run, or failed as its directive TODO says it may. */
enum tap_result { TAP_PASSED, TAP_FAILED, TAP_SKIPPED };

/**
 * struct tap_text - bytes that grow, any bytes
 * @bytes: ends in a zero byte that is not counted; NULL while @length is 0
 */
struct tap_text {
	char *bytes;
	size_t length, room;
};

/**
 * struct tap_case - a test
 * @name: description, may be ""
 * @reason: directive and what stands behind it, such as "SKIP no network", or ""
 * @words: diagnostics behind a test that failed
 * @seconds: time since the test before it, or since the beginning
 */
struct tap_case {
	char *name, *reason;
	struct tap_text words;
	enum tap_result result;
	double seconds;
};

/**
 * struct tap - the output of a program, as far as it was read
 * @cases: tests in their order
 * @left_out: tests beyond TAP_CASES, which are counted here alone
 * @plans: number of plans; a sound output has one
 * @planned: number of tests that the first plan promises
 * @bailed: the program gave up; @bail says why
 * @output: first TAP_OUTPUT bytes of all that was printed
 * @more: bytes behind them
 * @line: the line that is being read; bytes beyond TAP_LINE are dropped
 * @since: when the last test ended, in seconds
 */
struct tap {
	struct tap_case *cases;
	size_t count, room, left_out;
	size_t plans;
	uint64_t planned;
	bool bailed;
	char *bail;
	struct tap_text output;
	uint64_t more;
	char line[TAP_LINE + 1];
	size_t line_length;
	double since;
};

/* Zeroed memory is a struct tap at the time 0 that has read nothing. */

/**
 * tap_take() - read the bytes that come next
 * @now: seconds since the program began
 *
 * Return: 0 or -ENOMEM, after which the tap can only be freed.
 */
int tap_take(struct tap *tap, const char *bytes, size_t length, double now);

/* Reads a last line that has no end. Return: as tap_take(). */
int tap_end(struct tap *tap, double now);

/* Number of tests with this result. */
size_t tap_count(const struct tap *tap, enum tap_result result);

/* Return: true when there was a test, a plan or a "Bail out!". */
bool tap_spoken(const struct tap *tap);

void tap_free(struct tap *tap);

#endif
