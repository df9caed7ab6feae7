/* SPDX-License-Identifier: MIT */
/*
 * What a verb says: a text for people, or with --json exactly one document on
 * stdout, {"schema": "embeng.VERB/1", ...}, also when it failed.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

/**
 * struct output - whose output, and how
 * @verb: as typed; names the schema
 * @command: of a verb that has several, or NULL; a member of the document
 */
struct output {
	const char *verb, *command;
	bool json;
};

/* A new document with its schema member. */
struct json_object *json_document(const struct output *out);

/* Prints the document on stdout and frees it: 0. What of it is lost, output_finish() tells. */
int json_emit(struct json_object *document);

/* A number, or the strings "nan", "inf", "-inf": JSON has no such numbers. */
struct json_object *json_float(double value);

/* Members; NULL as a text is null. */
void json_add_text(struct json_object *to, const char *key, const char *text);
void json_add_number(struct json_object *to, const char *key, uint64_t number);
void json_add_float(struct json_object *to, const char *key, double value);

/* The member "error" of a failure's document. */
void json_add_error(struct json_object *document, int exit_code, int err, const char *hint,
		    const char *message);

/**
 * output_fail() - report a failure, as a sentence on stderr or as the document
 * @err: errno, either sign
 * @hint: what to do about it, or NULL
 *
 * Return: @exit_code, for the verb to return.
 */
int output_fail(const struct output *out, int exit_code, int err, const char *hint,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * What was printed and is lost is no success. Return: @code, or that of the lost output, which
 * is reported, unless a verb failed and has said why.
 */
int output_finish(int code);

/* output_fail() for a libembeng call that returned @err: sentence and exit code are its own. */
int output_library_failure(const struct output *out, int err, const char *hint);

#endif
