// SPDX-License-Identifier: MIT
/*
 * The JSON documents of the command, and its error messages as text or as a document.
 *
 * A document belongs to the caller until json_emit() takes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embeng.h"

#include "../../../engine/blob/utf8.h"
#include "document.h"
#include "exit.h"
#include "output.h"
#include "sink.h"

#define LINE_FLAGS (JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)
#define DOCUMENT_FLAGS (JSON_C_TO_STRING_PRETTY | LINE_FLAGS)

struct json_object *json_document(const struct output *out)
{
	struct json_object *document;
	char schema[64];

	snprintf(schema, sizeof(schema), "embeng.%s/1", out->verb);
	document_expect(schema);
	document = json_object_new_object();
	json_object_object_add(document, "schema", json_object_new_string(schema));
	if (out->command)
		json_object_object_add(document, "command", json_object_new_string(out->command));
	return document;
}

/*
 * Prints a document in which a text, such as the name of a file, is not UTF-8 and so cannot be in
 * JSON: U+FFFD stands for each byte that is none.
 */
static void print_repaired(struct json_object *document, int flags)
{
	const char *text = json_object_to_json_string_ext(document, flags);

	if (!text)
		document_no_memory();
	while (*text) {
		uint32_t length = utf8_sequence((const unsigned char *)text);

		if (length)
			fwrite(text, 1, length, stdout);
		else
			fputs("\xef\xbf\xbd", stdout);
		text += length ? length : 1;
	}
	putchar('\n');
}

int json_emit(struct json_object *document)
{
	size_t length;
	char *text;
	int err = document_text(document, &text, &length);

	if (err == -ENOMEM)
		document_no_memory();
	if (err) {
		print_repaired(document, DOCUMENT_FLAGS);
	} else {
		fwrite(text, 1, length, stdout);
		free(text);
	}
	json_object_put(document);
	return CLI_OK;
}

int json_emit_line(struct json_object *document)
{
	size_t length;
	char *text;
	int err = document_line(document, &text, &length);

	if (err == -ENOMEM)
		document_no_memory();
	if (err) {
		print_repaired(document, LINE_FLAGS);
	} else {
		fwrite(text, 1, length, stdout);
		free(text);
		putchar('\n');
	}
	json_object_put(document);
	return output_finish(CLI_OK);
}

struct json_object *json_float(double value)
{
	char digits[40];

	if (isnan(value))
		return json_object_new_string("nan");
	if (isinf(value))
		return json_object_new_string(value < 0 ? "-inf" : "inf");
	snprintf(digits, sizeof(digits), "%.9g", value);
	return json_object_new_double_s(value, digits);
}

void json_add_text(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key, text ? json_object_new_string(text) : NULL);
}

void json_add_number(struct json_object *to, const char *key, uint64_t number)
{
	json_object_object_add(to, key, json_object_new_uint64(number));
}

void json_add_float(struct json_object *to, const char *key, double value)
{
	json_object_object_add(to, key, json_float(value));
}

void json_add_error(struct json_object *document, int exit_code, int err, const char *hint,
		    const char *message)
{
	struct json_object *error = json_object_new_object();

	json_object_object_add(error, "code", json_object_new_int(exit_code));
	json_object_object_add(error, "name", json_object_new_string(errno_name(err)));
	json_object_object_add(error, "message", json_object_new_string(message));
	json_object_object_add(error, "hint", hint ? json_object_new_string(hint) : NULL);
	json_object_object_add(document, "error", error);
}

static void emit_failure(const struct output *out, int exit_code, int err, const char *hint,
			 const char *message)
{
	struct json_object *document = json_document(out);

	json_add_error(document, exit_code, err, hint, message);
	json_emit(document);
}

/* A name in a message may have been made by others; a terminal must not take it as a command. */
static void hide_controls(char *message)
{
	for (char *c = message; *c; c++) {
		if (((unsigned char)*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
			*c = '?';
	}
}

int output_fail(const struct output *out, int exit_code, int err, const char *hint,
		const char *format, ...)
{
	char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);

	if (out->json) {
		emit_failure(out, exit_code, err, hint, message ? message : "out of memory");
	} else {
		if (message)
			hide_controls(message);
		fprintf(stderr, "embeng %s%s%s: %s\n", out->verb, out->command ? " " : "",
			out->command ? out->command : "", message ? message : "out of memory");
		if (hint)
			fprintf(stderr, "  %s\n", hint);
	}
	free(message);
	return exit_code;
}

int output_finish(int code)
{
	int err = sink_flush_stdout();

	if (!err || code != CLI_OK)
		return code;
	fprintf(stderr, "embeng: standard output: %s\n", strerror(-err));
	return exit_of_errno(err);
}

int output_library_failure(const struct output *out, int err, const char *hint)
{
	struct embeng_error error = EMBENG_INIT(embeng_error);

	embeng_last_error(&error);
	return output_fail(out, exit_of_errno(err), err, hint, "%s", error.text);
}
