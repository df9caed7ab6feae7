// SPDX-License-Identifier: MIT
/*
 * JSON: any bytes are read as a document, and written as a text of one. A document that is accepted
 * is written in each style and must read back the same. With each allocation failing in turn,
 * reading must give -ENOMEM.
 */
#include <errno.h>

#include "../../runtime/json/json_write.h"
#include "../unit/support/failing_alloc.h"
#include "fuzz.h"

#define LEVELS 16
#define ALLOCATIONS 64u /* looked at, of one call */

static char *write_document(const struct json *document, enum json_style style, size_t *length)
{
	struct json_writer w;
	char *text;

	json_write_begin(&w, style);
	json_write_value(&w, NULL, document);
	fuzz_check(!json_write_end(&w, &text, length), "%s", w.why);
	fuzz_check(strlen(text) == *length, "%zu bytes", *length);
	return text;
}

static void try_style(const struct json *document, enum json_style style)
{
	const struct json *again;
	char *first, *second, why[JSON_WHY];
	size_t length, same;

	first = write_document(document, style, &length);
	fuzz_check(!json_read(first, length, LEVELS, &again, why), "%s: %s", first, why);
	second = write_document(again, style, &same);
	fuzz_check(!strcmp(first, second), "%s became %s", first, second);
	json_free(again);
	free(first);
	free(second);
}

static void read_without_memory(const char *text, size_t size, int expected)
{
	bool starved = true;

	for (uint32_t nth = 1; starved && nth <= ALLOCATIONS; nth++) {
		const struct json *document = NULL;
		char why[JSON_WHY] = "";
		int result;

		scarce_begin(nth);
		result = json_read(text, size, LEVELS, &document, why);
		starved = scarce_end();
		fuzz_check(result == (starved ? -ENOMEM : expected), "%d: %s", result, why);
		fuzz_check(!result == !why[0] && !result == !!document, "%d: %s", result, why);
		json_free(document);
	}
}

static void write_without_memory(const struct json *document)
{
	bool starved = true;

	for (uint32_t nth = 1; starved && nth <= ALLOCATIONS; nth++) {
		struct json_writer w;
		char *text = NULL;
		size_t length;
		int result;

		scarce_begin(nth);
		json_write_begin(&w, JSON_SPACED);
		json_write_value(&w, NULL, document);
		result = json_write_end(&w, &text, &length);
		starved = scarce_end();
		fuzz_check(result == (starved ? -ENOMEM : 0) && !result == !!text, "%d", result);
		free(text);
	}
}

/* Asks each value for all that it says of itself. */
static void look_at(const struct json *value)
{
	__int128 number = value->kind == JSON_INTEGER ? (__int128)value->magnitude : 0;
	int64_t nearest;

	number = value->negative ? -number : number;
	nearest = number > INT64_MAX ? INT64_MAX : (int64_t)number;
	fuzz_check(json_int64(value) == nearest, "%lld", (long long)nearest);
	if (value->kind != JSON_REAL)
		fuzz_check(json_double(value) == (double)number, "%g", json_double(value));
	fuzz_check(json_true(value) == (value->kind == JSON_BOOLEAN && value->boolean), "true");
	fuzz_check(!json_string(value) == (value->kind != JSON_TEXT), "text");
	fuzz_check(!json_at(value, json_length(value)), "more than there are");
	for (size_t i = 0; i < json_length(value); i++)
		look_at(json_at(value, i));
}

static void try_document(const uint8_t *data, size_t size)
{
	char *text = fuzz_memory(size), why[JSON_WHY] = "";
	const struct json *document = NULL;
	int result;

	memcpy(text, data, size);
	result = json_read(text, size, LEVELS, &document, why);
	fuzz_check(result == (why[0] ? -EBADMSG : 0), "%d: %s", result, why);
	read_without_memory(text, size, result);
	if (!result) {
		look_at(document);
		try_style(document, JSON_COMPACT);
		try_style(document, JSON_SPACED);
		try_style(document, JSON_LINES);
		write_without_memory(document);
	}
	json_free(document);
	free(text);
}

/* As a name and as a text: both come back, or neither was UTF-8. */
static void try_text(const uint8_t *data, size_t size)
{
	char *text = fuzz_memory(size + 1), *made, why[JSON_WHY];
	const struct json *document;
	struct json_writer w;
	size_t length;
	int result;

	memcpy(text, data, size);
	json_write_begin(&w, JSON_COMPACT);
	json_write_object(&w, NULL);
	json_write_text(&w, text, text);
	json_write_close(&w);
	result = json_write_end(&w, &made, &length);
	fuzz_check(!result || result == -EINVAL, "%d", result);
	if (!result) {
		fuzz_check(!json_read(made, length, LEVELS, &document, why), "%s: %s", made, why);
		fuzz_check(json_says(json_get(document, text), text), "%s", made);
		json_free(document);
		free(made);
	}
	free(text);
}

/* A real of any bits; what is no number is refused. */
static void try_real(const uint8_t *data, size_t size)
{
	char *made, why[JSON_WHY];
	const struct json *document;
	struct json_writer w;
	double real, again;
	size_t length;

	if (size < sizeof(real))
		return;
	memcpy(&real, data, sizeof(real));
	json_write_begin(&w, JSON_COMPACT);
	json_write_real(&w, NULL, real);
	if (!__builtin_isfinite(real)) {
		fuzz_check(json_write_end(&w, &made, &length) == -EINVAL, "%g", real);
		return;
	}
	fuzz_check(!json_write_end(&w, &made, &length), "%s", w.why);
	fuzz_check(!json_read(made, length, LEVELS, &document, why), "%s: %s", made, why);
	again = json_double(document);
	fuzz_check(!memcmp(&real, &again, sizeof(real)), "%a became %a", real, again);
	json_free(document);
	free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_document(data, size);
	try_text(data, size);
	try_real(data, size);
	return 0;
}
