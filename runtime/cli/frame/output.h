/* SPDX-License-Identifier: MIT */
/*
 * The output of a verb: text for people, or with --json exactly one document on
 * stdout, {"schema": "embeng.VERB/1", ...}, also when it failed.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

/**
 * struct output - the verb whose output it is, and its form
 * @verb: name of the verb as typed, which names the schema
 * @command: command of a verb that has several, or NULL; a member of the document
 */
struct output {
	const char *verb, *command;
	bool json;
};

/* Makes a document with its member "schema". */
struct json_object *json_document(const struct output *out);

/* Prints the document on stdout and frees it. Returns 0; output_finish() reports lost output. */
int json_emit(struct json_object *document);

/*
 * json_emit() for one of many documents: it takes one line, and the reader of a pipe has it at once.
 * Return: 0, or the exit code of an output that takes no more.
 */
int json_emit_line(struct json_object *document);

/* Makes a number, or a text "nan", "inf" or "-inf", because JSON has no such numbers. */
struct json_object *json_float(double value);

/* These add members. A text that is NULL becomes null. */
void json_add_text(struct json_object *to, const char *key, const char *text);
void json_add_number(struct json_object *to, const char *key, uint64_t number);
void json_add_float(struct json_object *to, const char *key, double value);

/* Adds the member "error" to the document of a failure. */
void json_add_error(struct json_object *document, int exit_code, int err, const char *hint,
		    const char *message);

/**
 * output_fail() - report a failure, as a sentence on stderr or as the document
 * @err: errno, of either sign
 * @hint: advice to the user, or NULL
 *
 * Return: @exit_code, for the verb to return.
 */
int output_fail(const struct output *out, int exit_code, int err, const char *hint,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * Reports lost output, which is no success. Return: @code; if output was lost and the verb did not
 * fail itself, the exit code for that.
 */
int output_finish(int code);

/* output_fail() for a libembeng call that returned @err, with the library's own sentence. */
int output_library_failure(const struct output *out, int err, const char *hint);

#endif
