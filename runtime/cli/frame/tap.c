// SPDX-License-Identifier: MIT
/*
 * Writes test results as TAP version 14. The reasons of a failure follow it as YAML, which JSON
 * scalars are as well.
 */
#include "tap.h"

/* A name may hold what TAP gives a meaning. */
static void put_test_name(FILE *out, const char *name)
{
	for (; *name; name++) {
		if (*name == '#' || *name == '\\')
			fputc('\\', out);
		fputc((unsigned char)*name < 0x20 ? ' ' : *name, out);
	}
}

static void put_result(FILE *out, const char *word, size_t number, const char *name)
{
	fprintf(out, "%s %zu - ", word, number);
	put_test_name(out, name);
}

/* JSON scalars are YAML. */
static void put_scalar(FILE *out, struct json_object *value)
{
	fputs(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE),
	      out);
	fputc('\n', out);
}

static void put_failure(FILE *out, struct json_object *failure)
{
	const char *lead = "    - ";

	json_object_object_foreach(failure, key, value)
	{
		fprintf(out, "%s%s: ", lead, key);
		put_scalar(out, value);
		lead = "      ";
	}
}

void tap_begin(FILE *out)
{
	fputs("TAP version 14\n", out);
}

void tap_plan(FILE *out, size_t tests)
{
	fprintf(out, "1..%zu\n", tests);
}

void tap_comment(FILE *out, const char *text)
{
	fprintf(out, "# %s\n", text);
}

void tap_ok(FILE *out, size_t number, const char *name)
{
	put_result(out, "ok", number, name);
	fputc('\n', out);
}

void tap_skip(FILE *out, size_t number, const char *name, struct json_object *reasons)
{
	put_result(out, "ok", number, name);
	fputs(" # SKIP", out);
	for (size_t i = 0; i < json_object_array_length(reasons); i++) {
		fputc(' ', out);
		put_test_name(out, json_object_get_string(json_object_array_get_idx(reasons, i)));
	}
	fputc('\n', out);
}

static void put_file(FILE *out, const char *file)
{
	struct json_object *path = json_object_new_string(file);

	fputs("  file: ", out);
	put_scalar(out, path);
	json_object_put(path);
}

void tap_not_ok(FILE *out, size_t number, const char *name, const char *file,
		struct json_object *failures)
{
	put_result(out, "not ok", number, name);
	fputs("\n  ---\n", out);
	if (file)
		put_file(out, file);
	fputs("  failures:\n", out);
	for (size_t i = 0; i < json_object_array_length(failures); i++)
		put_failure(out, json_object_array_get_idx(failures, i));
	fputs("  ...\n", out);
}
