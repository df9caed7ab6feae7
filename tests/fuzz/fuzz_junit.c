// SPDX-License-Identifier: MIT
/*
 * TAP and JUnit XML: any bytes are read as what a program printed, in pieces of any size. The XML
 * that is made of them must be well-formed, with no markup but the writer's own, and count the tests
 * that it has. With each allocation failing in turn, reading must give -ENOMEM.
 */
#include <errno.h>
#include <inttypes.h>

#include "../../engine/blob/utf8.h"
#include "../../runtime/cli/vm/junit.h"
#include "../unit/support/failing_alloc.h"
#include "fuzz.h"

#define ALLOCATIONS 64u /* looked at, of one input */

/* The first byte says how large pieces are. */
static int read_all(struct tap *tap, const uint8_t *data, size_t size)
{
	size_t piece = size ? *data % 32 + 1u : 1;
	double now = 0;
	int rc = 0;

	memset(tap, 0, sizeof(*tap));
	for (size_t at = size ? 1 : 0; at < size && !rc; at += piece, now += 0.5)
		rc = tap_take(tap, (const char *)data + at, piece < size - at ? piece : size - at,
			      now);
	return rc ? rc : tap_end(tap, now);
}

/* Return: the number of times that @part is in @text. */
static uint32_t times_in(const char *text, const char *part)
{
	uint32_t times = 0;

	for (text = strstr(text, part); text; text = strstr(text + 1, part))
		times++;
	return times;
}

static void check_entity(const char *at)
{
	static const char *const known[] = {"&amp;", "&lt;",  "&gt;", "&quot;",
					    "&#9;",  "&#10;", "&#13;"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strncmp(at, known[i], strlen(known[i])))
			return;
	}
	fuzz_check(false, "%.10s", at);
}

/* Return: what follows a tag of the writer's that begins at @at. */
static const char *skip_tag(const char *at)
{
	static const char *const known[] = {"?xml",    "testsuites", "testsuite", "testcase",
					    "failure", "error",	     "skipped",	  "system-out"};
	const char *name = at + 1 + (at[1] == '/'), *end = strchr(at, '>');
	size_t length = strcspn(name, " />");

	fuzz_check(end, "%.40s", at);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (length == strlen(known[i]) && !strncmp(name, known[i], length))
			return end + 1;
	}
	fuzz_check(false, "%.40s", at);
	return end;
}

static void check_xml(const char *text, size_t length)
{
	const char *at = text;

	fuzz_check(strlen(text) == length, "a zero byte");
	while (*at) {
		u32 bytes = utf8_sequence((const u8 *)at);

		fuzz_check(bytes, "not UTF-8: %.10s", at);
		fuzz_check(bytes > 1 || *at >= 0x20 || *at == '\n' || *at == '\t', "%#x", *at);
		if (*at == '&')
			check_entity(at);
		at = *at == '<' ? skip_tag(at) : at + bytes;
	}
	fuzz_check(times_in(text, "<testcase ") == times_in(text, "</testcase>"), "%s", text);
}

static void write_all(const struct tap *tap, int status)
{
	struct junit run = {.suite = "a \"suite\"", .status = status, .seconds = 1, .tap = tap};
	char *text, counts[64];
	size_t length;
	FILE *out = open_memstream(&text, &length);

	fuzz_check(out, "no memory");
	junit_write(out, &run);
	fclose(out);
	check_xml(text, length);
	snprintf(counts, sizeof(counts), " tests=\"%" PRIu32 "\" failures=\"%zu\" ",
		 times_in(text, "<testcase "), tap_count(tap, TAP_FAILED));
	fuzz_check(times_in(text, counts) == 2, "%s is not in %s", counts, text);
	fuzz_check(times_in(text, "<failure ") == tap_count(tap, TAP_FAILED), "%s", text);
	/* A run that failed shows it. */
	fuzz_check(!status || times_in(text, "<failure ") || times_in(text, "<error "), "%s", text);
	free(text);
}

static void read_without_memory(const uint8_t *data, size_t size)
{
	bool starved = true;

	for (uint32_t nth = 1; starved && nth <= ALLOCATIONS; nth++) {
		static struct tap tap;
		int rc;

		scarce_begin(nth);
		rc = read_all(&tap, data, size);
		starved = scarce_end();
		fuzz_check(rc == (starved ? -ENOMEM : 0), "%d", rc);
		tap_free(&tap);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tap tap;

	fuzz_check(!read_all(&tap, data, size), "no memory");
	write_all(&tap, 0);
	write_all(&tap, 1);
	tap_free(&tap);
	read_without_memory(data, size);
	return 0;
}
