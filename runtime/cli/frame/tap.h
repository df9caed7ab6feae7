/* SPDX-License-Identifier: MIT */
/* Writes test results in TAP, version 14. */
#ifndef CLI_TAP_H
#define CLI_TAP_H

#include <stddef.h>
#include <stdio.h>

#include <json-c/json.h>

void tap_begin(FILE *out);
/* The plan comes directly behind tap_begin(), or last of all if the number is known only then. */
void tap_plan(FILE *out, size_t tests);
void tap_comment(FILE *out, const char *text);
void tap_ok(FILE *out, size_t number, const char *name);
/* @reasons is a list of texts, such as the names of missing capabilities. */
void tap_skip(FILE *out, size_t number, const char *name, struct json_object *reasons);
/* @file may be NULL. @failures is a list of objects, which are shown as a YAML block. */
void tap_not_ok(FILE *out, size_t number, const char *name, const char *file,
		struct json_object *failures);

#endif
