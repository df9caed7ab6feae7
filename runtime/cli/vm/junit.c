// SPDX-License-Identifier: MIT
/*
 * Writes JUnit XML. There is no standard for it: the elements and attributes here are those that
 * Jenkins, GitLab and GitHub's actions read. All texts come from a program that may be hostile, and
 * pass put_xml_text().
 *
 * It keeps no memory.
 */
#include <inttypes.h>
#include <string.h>

#include "../../../engine/blob/utf8.h"

#include "junit.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* U+FFFE and U+FFFF are no characters to XML; other controls than these three neither. */
static bool may_stand_in_xml(const u8 *at, u32 bytes)
{
	if (bytes == 1)
		return *at >= 0x20 || *at == '\t' || *at == '\n' || *at == '\r';
	return bytes != 3 || at[0] != 0xef || at[1] != 0xbf || at[2] < 0xbe;
}

/* In an attribute a reader turns newlines and tabs into blanks, unless they are written so. */
static const char *escape_of(u8 byte)
{
	switch (byte) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\t':
		return "&#9;";
	case '\n':
		return "&#10;";
	case '\r':
		return "&#13;";
	default:
		return NULL;
	}
}

/* Writes any bytes. @attribute: newlines and tabs are written by their numbers, too. */
static void put_xml_text(FILE *out, const char *text, size_t length, bool attribute)
{
	for (size_t i = 0; i < length;) {
		u8 next[5] = {0};
		const char *escape;
		u32 bytes;

		memcpy(next, text + i, length - i < 4 ? length - i : 4);
		bytes = utf8_sequence(next);
		escape = escape_of(next[0]);
		if (!bytes || !may_stand_in_xml(next, bytes))
			fputs(REPLACEMENT, out);
		else if (escape && (attribute || (*next != '\t' && *next != '\n')))
			fputs(escape, out);
		else
			fwrite(next, 1, bytes, out);
		i += bytes ? bytes : 1;
	}
}

static void put_attribute(FILE *out, const char *name, const char *value)
{
	fprintf(out, " %s=\"", name);
	put_xml_text(out, value, strlen(value), true);
	fputc('"', out);
}

static void begin_case(FILE *out, const struct junit *run, const char *name, double seconds)
{
	fputs("    <testcase", out);
	put_attribute(out, "classname", run->suite);
	put_attribute(out, "name", name);
	fprintf(out, " time=\"%.3f\">\n", seconds);
}

static void put_case(FILE *out, const struct junit *run, const struct tap_case *test)
{
	begin_case(out, run, test->name, test->seconds);
	if (test->result == TAP_SKIPPED) {
		fputs("      <skipped", out);
		put_attribute(out, "message", test->reason);
		fputs("/>\n", out);
	} else if (test->result == TAP_FAILED) {
		fputs("      <failure", out);
		put_attribute(out, "message", "not ok");
		fputc('>', out);
		put_xml_text(out, test->words.bytes, test->words.length, false);
		fputs("</failure>\n", out);
	}
	fputs("    </testcase>\n", out);
}

#define PROBLEM 160

/* Return: what is wrong beside tests that failed, as a sentence in @text; or NULL. */
static const char *find_problem(const struct junit *run, char text[PROBLEM])
{
	const struct tap *tap = run->tap;
	uint64_t tests = (uint64_t)tap->count + tap->left_out;

	if (tap->bailed)
		snprintf(text, PROBLEM, "the program gave up: %.100s", tap->bail);
	else if (tap_spoken(tap) && !tap->plans)
		snprintf(text, PROBLEM, "there is no plan (1..N): the output may have ended early");
	else if (tap->plans > 1)
		snprintf(text, PROBLEM, "there are %zu plans (1..N), not one", tap->plans);
	else if (tap->plans && tap->planned != tests)
		snprintf(text, PROBLEM,
			 "the plan promises %" PRIu64 " tests, and %" PRIu64 " were run",
			 tap->planned, tests);
	else if (run->status && !tap_count(tap, TAP_FAILED))
		snprintf(text, PROBLEM, "exit status %d", run->status);
	else
		return NULL;
	return text;
}

static void put_problem(FILE *out, const struct junit *run, const char *problem)
{
	begin_case(out, run, run->suite, tap_spoken(run->tap) ? 0 : run->seconds);
	fputs("      <error", out);
	put_attribute(out, "message", problem);
	fputs("/>\n    </testcase>\n", out);
}

static void put_output(FILE *out, const struct tap *tap)
{
	fputs("    <system-out>", out);
	put_xml_text(out, tap->output.bytes, tap->output.length, false);
	if (tap->more)
		fprintf(out, "\n(%" PRIu64 " bytes more are left out)", tap->more);
	fputs("</system-out>\n", out);
}

/* Attributes of both elements that have counts. */
static void put_counts(FILE *out, const struct junit *run, size_t tests, bool error)
{
	fprintf(out,
		" tests=\"%zu\" failures=\"%zu\" errors=\"%d\" skipped=\"%zu\" time=\"%.3f\">\n",
		tests, tap_count(run->tap, TAP_FAILED), error, tap_count(run->tap, TAP_SKIPPED),
		run->seconds);
}

void junit_write(FILE *out, const struct junit *run)
{
	const struct tap *tap = run->tap;
	char text[PROBLEM];
	const char *problem = find_problem(run, text);
	bool silent = !problem && !tap_spoken(tap); /* the program itself is the one test */
	size_t tests = tap->count + (problem || silent);

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", out);
	put_attribute(out, "name", run->suite);
	put_counts(out, run, tests, problem);
	fputs("  <testsuite", out);
	put_attribute(out, "name", run->suite);
	put_counts(out, run, tests, problem);
	for (size_t i = 0; i < tap->count; i++)
		put_case(out, run, &tap->cases[i]);
	if (problem)
		put_problem(out, run, problem);
	if (silent) {
		begin_case(out, run, run->suite, run->seconds);
		fputs("    </testcase>\n", out);
	}
	put_output(out, tap);
	fputs("  </testsuite>\n</testsuites>\n", out);
}
