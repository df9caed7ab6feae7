// SPDX-License-Identifier: MIT
/* TAP as it is read, whatever else is printed, and the JUnit XML that is made of it, byte by byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cli/vm/junit.h"
#include "suite.h"

static struct tap tap;

static void begin(void)
{
	memset(&tap, 0, sizeof(tap));
}

static void end(void)
{
	tap_free(&tap);
}

static void take(const char *text)
{
	ck_assert_int_eq(tap_take(&tap, text, strlen(text), 0), 0);
	ck_assert_int_eq(tap_end(&tap, 0), 0);
}

/* The XML of what was taken; the caller frees it. */
static char *written(int status)
{
	struct junit run = {.suite = "prog", .status = status, .seconds = 2.5, .tap = &tap};
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	junit_write(out, &run);
	ck_assert_int_eq(fclose(out), 0);
	return text;
}

static void has(int status, const char *part)
{
	char *text = written(status);

	ck_assert_msg(strstr(text, part) != NULL, "no %s in:\n%s", part, text);
	free(text);
}

START_TEST(lines)
{
	static const struct {
		const char *line, *name, *reason;
		enum tap_result result;
	} cases[] = {
		{"ok 1 - a name\n", "a name", "", TAP_PASSED},
		{"ok\n", "", "", TAP_PASSED},
		{"ok 12\n", "", "", TAP_PASSED},
		{"not ok - b\r\n", "b", "", TAP_FAILED},
		{"not ok 3 # todo later\n", "", "todo later", TAP_SKIPPED},
		{"ok 4 c # TODO done already\n", "c", "TODO done already", TAP_PASSED},
		{"ok 5 - d # Skip: no network\n", "d", "Skip: no network", TAP_SKIPPED},
		{"not ok 6 - e # SKIP\n", "e", "SKIP", TAP_SKIPPED},
		{"ok 7 - issue #12 and \\# SKIP \\\\ it\n", "issue #12 and # SKIP \\ it", "",
		 TAP_PASSED},
		{"ok 8 - no directive#SKIP\n", "no directive#SKIP", "", TAP_PASSED},
		{"ok\t9\t-\tblanks", "blanks", "", TAP_PASSED},
	};
	const typeof(cases[0]) *c = &cases[_i];

	if ((size_t)_i >= sizeof(cases) / sizeof(cases[0]))
		return;
	take(c->line);
	ck_assert_uint_eq(tap.count, 1);
	ck_assert_str_eq(tap.cases[0].name, c->name);
	ck_assert_str_eq(tap.cases[0].reason, c->reason);
	ck_assert_int_eq(tap.cases[0].result, c->result);
}
END_TEST

START_TEST(no_lines_of_tap)
{
	take("okay\nnot okay\n ok 1\nnotok\n1..\n1..3x\n1..99999999999999999999999\n1..5 b\nBail "
	     "out\n"
	     "# ok 1\n");
	ck_assert(!tap_spoken(&tap));
}
END_TEST

START_TEST(plans)
{
	take("1..2\nok\nok\n1..7 # SKIP x\n");
	ck_assert_uint_eq(tap.plans, 2);
	ck_assert_uint_eq(tap.planned, 2);
	has(0, "errors=\"1\"");
	has(0, "message=\"there are 2 plans (1..N), not one\"");
}
END_TEST

/* Bytes come in pieces of any size; times are those between tests. */
START_TEST(pieces)
{
	static const char text[] =
		"noise\nok 1 - one\nnot ok 2 - two\n# why\n  ---\n  at: 5\n1..2\n";
	double now = 0;

	for (const char *at = text; *at; at++, now += 0.25)
		ck_assert_int_eq(tap_take(&tap, at, 1, now), 0);
	ck_assert_uint_eq(tap.count, 2);
	ck_assert_double_eq(tap.cases[0].seconds, 0.25 * 16);
	ck_assert_double_eq(tap.cases[1].seconds, 0.25 * 15);
	ck_assert_str_eq(tap.cases[1].words.bytes, "why\n---\nat: 5\n");
	ck_assert_str_eq(tap.output.bytes, text);
	ck_assert_uint_eq(tap_count(&tap, TAP_PASSED), 1);
	ck_assert_uint_eq(tap_count(&tap, TAP_FAILED), 1);
}
END_TEST

START_TEST(whole_file)
{
	static const char expected[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites name=\"prog\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""
		" time=\"2.500\">\n"
		"  <testsuite name=\"prog\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""
		" time=\"2.500\">\n"
		"    <testcase classname=\"prog\" name=\"a\" time=\"0.000\">\n"
		"    </testcase>\n"
		"    <testcase classname=\"prog\" name=\"b\" time=\"0.000\">\n"
		"      <failure message=\"not ok\">1 &lt; 2 &amp;&amp; 3\n</failure>\n"
		"    </testcase>\n"
		"    <testcase classname=\"prog\" name=\"c\" time=\"0.000\">\n"
		"      <skipped message=\"SKIP no &quot;c&quot;\"/>\n"
		"    </testcase>\n"
		"    <system-out>ok 1 - a\nnot ok 2 - b\n# 1 &lt; 2 &amp;&amp; 3\n"
		"ok 3 - c # SKIP no &quot;c&quot;\n1..3\n</system-out>\n"
		"  </testsuite>\n"
		"</testsuites>\n";
	char *text;

	take("ok 1 - a\nnot ok 2 - b\n# 1 < 2 && 3\nok 3 - c # SKIP no \"c\"\n1..3\n");
	text = written(1);
	ck_assert_str_eq(text, expected);
	free(text);
}
END_TEST

/* A program prints bytes that would break the XML, or look like markup of ours. */
START_TEST(hostile)
{
	static const char bytes[] =
		"not ok 1 - \x1b[31m\"><evil a='\xff\xc0\xaf\xed\xa0\x80\xef\xbf\xbe\t\xc3\xa4\n"
		"# ]]></failure><failure>\0end\x7f\n1..1\n";

	ck_assert_int_eq(tap_take(&tap, bytes, sizeof(bytes) - 1, 0), 0);
	has(1, "name=\"\xef\xbf\xbd[31m&quot;&gt;&lt;evil a='\xef\xbf\xbd"
	       "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
	       "&#9;\xc3\xa4\"");
	has(1, "]]&gt;&lt;/failure&gt;&lt;failure&gt;");
	has(1, "&lt;failure&gt;\xef\xbf\xbd"
	       "end\x7f\n");
}
END_TEST

START_TEST(problems)
{
	static const struct {
		const char *text;
		int status;
		const char *part;
	} cases[] = {
		{"no tap\n", 0, "tests=\"1\" failures=\"0\" errors=\"0\""},
		{"no tap\n", 124, "tests=\"1\" failures=\"0\" errors=\"1\""},
		{"", 125, "<error message=\"exit status 125\"/>"},
		{"ok\n1..1\n", 0, "tests=\"1\" failures=\"0\" errors=\"0\""},
		{"ok\n1..1\n", 3, "<error message=\"exit status 3\"/>"},
		{"not ok\n1..1\n", 1, "tests=\"1\" failures=\"1\" errors=\"0\""},
		{"ok\n", 0,
		 "<error message=\"there is no plan (1..N): the output may have ended early\"/>"},
		{"1..2\nok\n", 0, "<error message=\"the plan promises 2 tests, and 1 were run\"/>"},
		{"1..0 # SKIP nothing to do\n", 0, "tests=\"0\" failures=\"0\" errors=\"0\""},
		{"1..2\nok\nBail out! <no> disk\n", 1,
		 "<error message=\"the program gave up: &lt;no&gt; disk\"/>"},
	};

	if ((size_t)_i >= sizeof(cases) / sizeof(cases[0]))
		return;
	take(cases[_i].text);
	has(cases[_i].status, cases[_i].part);
}
END_TEST

/* A program that prints without end is bounded, and its tests are still counted. */
START_TEST(bounds)
{
	static char noise[1 << 16];
	char expected[80];

	memset(noise, 'x', sizeof(noise));
	take("not ok 1 - a\n");
	ck_assert_int_eq(tap_take(&tap, "# ", 2, 0), 0);
	for (int i = 0; i < 40; i++)
		ck_assert_int_eq(tap_take(&tap, noise, sizeof(noise), 0), 0);
	take("\nok 2 - b\n1..2\n");
	ck_assert_uint_eq(tap.count, 2);
	ck_assert_uint_eq(tap.output.length, TAP_OUTPUT);
	/* The line is cut; its comment sign and the blank behind it are not kept. */
	ck_assert_uint_eq(tap.cases[0].words.length, TAP_LINE - 2 + 1);
	snprintf(expected, sizeof(expected), "(%llu bytes more are left out)",
		 (unsigned long long)(40 * sizeof(noise) + 30 - TAP_OUTPUT));
	ck_assert_uint_eq(tap.more + tap.output.length, 40 * sizeof(noise) + 30);
	has(1, expected);
	take("not ok 3\n");
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(tap_take(&tap, "# ", 2, 0), 0);
		ck_assert_int_eq(tap_take(&tap, noise, 4000, 0), 0);
		ck_assert_int_eq(tap_take(&tap, "\n", 1, 0), 0);
	}
	ck_assert_uint_eq(tap.cases[tap.count - 1].words.length, TAP_WORDS);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_loop_test(tcase, lines, 0, 11);
	tcase_add_test(tcase, no_lines_of_tap);
	tcase_add_test(tcase, plans);
	tcase_add_test(tcase, pieces);
	tcase_add_test(tcase, whole_file);
	tcase_add_test(tcase, hostile);
	tcase_add_loop_test(tcase, problems, 0, 10);
	tcase_add_test(tcase, bounds);
}

int main(void)
{
	return suite_main("junit", add);
}
