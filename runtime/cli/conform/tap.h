/* SPDX-License-Identifier: MIT */
/* Writes test results in TAP, version 14. */
#ifndef CLI_TAP_H
#define CLI_TAP_H

#include <stddef.h>
#include <stdio.h>

#include <json-c/json.h>

void tap_plan(FILE *out, size_t tests);
void tap_comment(FILE *out, const char *text);
void tap_ok(FILE *out, size_t number, const char *name);
/* @capabilities lists the missing ones by name. */
void tap_skip(FILE *out, size_t number, const char *name, struct json_object *capabilities);
/* @failures is a list of objects, which are shown as a YAML block. */
void tap_not_ok(FILE *out, size_t number, const char *name, const char *file,
		struct json_object *failures);

#endif
