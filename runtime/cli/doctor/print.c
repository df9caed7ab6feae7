// SPDX-License-Identifier: MIT
/*
 * The results of `embeng doctor` for people and for programs. Texts of findings may have words of
 * files that are not trusted; they have no control characters, see tree_text(). Nothing is kept.
 */
#include "print.h"

#include <stdio.h>

#include "../frame/progress.h"
#include "../frame/terminal.h"

#define NAME_COLUMNS 18
#define WORD_COLUMNS 7

static const struct {
	const char *word, *line, *color;
} verdicts[] = {
	[VERDICT_OK] = {"ok", "ok", "\x1b[32m"},
	[VERDICT_WARNING] = {"warning", "warning", "\x1b[33m"},
	[VERDICT_PROBLEM] = {"problem", "PROBLEM", "\x1b[31m"},
	[VERDICT_NOT_CHECKED] = {"not checked", "-", "\x1b[2m"},
};

static void print_verdict(enum verdict verdict, bool colors)
{
	printf("%s%-*s%s  ", colors ? verdicts[verdict].color : "", WORD_COLUMNS,
	       verdicts[verdict].line, colors ? "\x1b[0m" : "");
}

static void print_finding(const struct result *result, bool colors)
{
	print_verdict(result->finding.verdict, colors);
	printf("%-*s  ", NAME_COLUMNS, result->check->name);
	if (result->device)
		printf("%s: ", result->device);
	terminal_put(result->finding.seen);
	putchar('\n');
}

static void print_part(const char *label, const char *text)
{
	if (!*text)
		return;
	printf("  %-4s ", label);
	terminal_put(text);
	putchar('\n');
}

static bool is_bad(const struct result *result)
{
	return result->finding.verdict == VERDICT_WARNING ||
	       result->finding.verdict == VERDICT_PROBLEM;
}

static void print_reason(const struct result *result, bool colors)
{
	putchar('\n');
	print_finding(result, colors);
	print_part("why", result->finding.why);
	print_part("fix", result->finding.fix);
}

void doctor_print(const struct results *results, bool verbose)
{
	size_t problems = results_count(results, VERDICT_PROBLEM);
	size_t warnings = results_count(results, VERDICT_WARNING);
	bool colors = terminal_colors(stdout);

	for (size_t i = 0; i < results->count; i++) {
		if (verbose || results->list[i].finding.verdict != VERDICT_NOT_CHECKED)
			print_finding(&results->list[i], colors);
	}
	for (size_t i = 0; i < results->count; i++) {
		if (is_bad(&results->list[i]) ||
		    (verbose && results->list[i].finding.verdict == VERDICT_OK))
			print_reason(&results->list[i], colors);
	}
	printf("\n%zu problem%s, %zu warning%s, %zu ok, %zu not checked\n", problems,
	       problems == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s",
	       results_count(results, VERDICT_OK), results_count(results, VERDICT_NOT_CHECKED));
}

static struct json_object *document_finding(const struct result *result)
{
	struct json_object *row = json_object_new_object();

	json_add_text(row, "name", result->check->name);
	json_add_text(row, "device", result->device);
	json_add_text(row, "verdict", verdicts[result->finding.verdict].word);
	json_add_text(row, "seen", result->finding.seen);
	json_add_text(row, "why", result->finding.why);
	json_add_text(row, "fix", *result->finding.fix ? result->finding.fix : NULL);
	json_add_text(row, "stopped_by", result->stop ? result->stop->name : NULL);
	return row;
}

struct json_object *doctor_document(const struct output *out, const struct machine *m,
				    const struct results *results)
{
	struct json_object *document = json_document(out), *rows = json_object_new_array();

	json_add_text(document, "kernel", m->release);
	json_object_object_add(document, "recorded",
			       json_object_new_boolean(tree_is_recorded(m->tree)));
	json_add_number(document, "problems", results_count(results, VERDICT_PROBLEM));
	json_add_number(document, "warnings", results_count(results, VERDICT_WARNING));
	for (size_t i = 0; i < results->count; i++)
		json_object_array_add(rows, document_finding(&results->list[i]));
	json_object_object_add(document, "checks", rows);
	return document;
}
