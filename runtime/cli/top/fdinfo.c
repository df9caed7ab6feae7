// SPDX-License-Identifier: MIT
/*
 * Reads /proc/PID/fdinfo/FD of a DRM device. The kernel documents the form in
 * Documentation/gpu/drm-usage-stats.rst: a line has a key, a colon, a tab and a value, which may
 * have a unit.
 *
 * It is a file of its own because its input may be a recorded tree, which anybody may have written.
 * Nothing is allocated.
 */
#include "fdinfo.h"

#include <stddef.h>
#include <string.h>

#include "../../text/number.h"

static const char *const keys[FDINFO_NUMBERS] = {
#define KEY(name, key, json, words) key,
	FDINFO_TABLE(KEY)
#undef KEY
};

/* A part of a line, without blanks at its ends. */
struct span {
	const char *at;
	size_t length;
};

static struct span trim_span(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return (struct span){at, (size_t)(end - at)};
}

static bool span_is(struct span span, const char *word)
{
	return span.length == strlen(word) && !memcmp(span.at, word, span.length);
}

/* A name that does not fit is left out: a part of it would name something else. */
static void copy_span(struct span span, char *to, size_t size)
{
	if (span.length >= size)
		return;
	memcpy(to, span.at, span.length);
	to[span.length] = '\0';
}

/* Units of memory are powers of 1024; time is in nanoseconds, and a count has no unit. */
static bool read_unit(struct span unit, uint64_t *factor)
{
	static const struct {
		const char *word;
		uint64_t factor;
	} units[] = {{"", 1},	       {"ns", 1},	 {"B", 1},
		     {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (span_is(unit, units[i].word)) {
			*factor = units[i].factor;
			return true;
		}
	}
	return false;
}

static bool read_span_number(struct span span, uint64_t *number)
{
	size_t digits = 0;
	uint64_t value, factor;

	while (digits < span.length && span.at[digits] >= '0' && span.at[digits] <= '9')
		digits++;
	if (number_read(span.at, digits, 10, &value) ||
	    !read_unit(trim_span(span.at + digits, span.at + span.length), &factor))
		return false;
	return !__builtin_mul_overflow(value, factor, number);
}

static void take_pair(struct span key, struct span value, struct fdinfo *out)
{
	uint64_t number;

	if (span_is(key, "drm-driver"))
		copy_span(value, out->driver, sizeof(out->driver));
	else if (span_is(key, "drm-pdev"))
		copy_span(value, out->address, sizeof(out->address));
	if (!read_span_number(value, &number))
		return;
	if (span_is(key, "drm-client-id")) {
		out->client = number;
		out->has_client = true;
	}
	for (size_t i = 0; i < FDINFO_NUMBERS; i++) {
		if (!span_is(key, keys[i]))
			continue;
		out->numbers[i] = number;
		out->known |= 1u << i;
	}
}

void fdinfo_read(const char *text, struct fdinfo *out)
{
	*out = (struct fdinfo){0};
	while (*text) {
		size_t length = strcspn(text, "\n");
		const char *end = text + length, *colon = memchr(text, ':', length);

		if (colon)
			take_pair(trim_span(text, colon), trim_span(colon + 1, end), out);
		text = *end ? end + 1 : end;
	}
}
