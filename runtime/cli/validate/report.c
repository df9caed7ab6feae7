// SPDX-License-Identifier: MIT
/*
 * Tells what the checks found. With TAP each check has its line when it ends, so that a reader sees
 * where a long run is; the table and the document come last.
 *
 * A report borrows the validation, and keeps nothing but the number of the newest line.
 */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../device/device.h"
#include "../frame/interrupt.h"
#include "../frame/tap.h"
#include "../frame/terminal.h"

enum { SUITE_COLUMNS = 10, CHECK_COLUMNS = 10, RESULT_COLUMNS = 8 };

const char *report_duration(double ms, char text[REPORT_DURATION])
{
	if (ms < 1000)
		snprintf(text, REPORT_DURATION, "%.0f ms", ms);
	else
		snprintf(text, REPORT_DURATION, "%.1f s", ms / 1e3);
	return text;
}

void report_begin(struct report *r, const struct validation *v, const struct output *out, bool tap)
{
	*r = (struct report){.out = out, .v = v, .tap = tap, .progress = progress_start(true)};
	if (!tap)
		return;
	tap_begin(stdout);
	printf("# device %s, seed %" PRIu64 "\n", v->subject->device, v->subject->seed);
	fflush(stdout);
}

void report_check_begins(void *arg, size_t suite, size_t check)
{
	struct report *r = arg;
	const struct suite *list = r->v->list;

	progress_line(&r->progress, "round %" PRIu64 ": %s, %s", r->v->rounds, list[suite].name,
		      list[suite].checks[check].name);
}

static struct json_object *finding_document(const struct finding *f)
{
	struct json_object *document = json_object_new_object();

	json_add_text(document, "message", f->text);
	if (f->unit) {
		json_add_float(document, "measured", f->measured);
		json_add_float(document, "limit", f->limit);
		json_add_text(document, "unit", f->unit);
	}
	return document;
}

static void put_tap_line(struct report *r, const char *name, const struct finding *f)
{
	struct json_object *list = json_object_new_array();
	char reason[FINDING_TEXT + 16];

	r->number++;
	if (f->outcome == OUTCOME_FAILED) {
		json_object_array_add(list, finding_document(f));
		tap_not_ok(stdout, r->number, name, NULL, list);
	} else if (f->outcome == OUTCOME_PASSED) {
		tap_ok(stdout, r->number, name);
	} else {
		snprintf(reason, sizeof(reason), "%s%s",
			 f->outcome == OUTCOME_NOT_RUN ? "not run: " : "", f->text);
		json_object_array_add(list, json_object_new_string(reason));
		tap_skip(stdout, r->number, name, list);
	}
	json_object_put(list);
	fflush(stdout);
}

void report_check_ends(void *arg, size_t suite, size_t check, const struct finding *f, double ms)
{
	struct report *r = arg;
	const struct suite *list = r->v->list;
	char name[64];

	(void)ms;
	if (!r->tap)
		return;
	progress_clear(&r->progress);
	snprintf(name, sizeof(name), "%s: %s", list[suite].name, list[suite].checks[check].name);
	put_tap_line(r, name, f);
}

/* Colours of a terminal: green, red, none, yellow. */
static void put_outcome(enum outcome outcome)
{
	static const char *const colors[OUTCOMES] = {"\x1b[32m", "\x1b[31m", "", "\x1b[33m"};
	bool colored = terminal_colors(stdout) && *colors[outcome];

	if (colored)
		fputs(colors[outcome], stdout);
	terminal_print(outcome_word(outcome), RESULT_COLUMNS);
	if (colored)
		fputs("\x1b[0m", stdout);
}

static void put_check_row(const struct report *r, size_t suite, size_t check)
{
	const struct tally *t = &r->v->tallies[suite][check];
	char text[REPORT_DURATION];

	terminal_print(check ? "" : r->v->list[suite].name, SUITE_COLUMNS);
	terminal_print(r->v->list[suite].checks[check].name, CHECK_COLUMNS);
	put_outcome(t->worst.outcome);
	printf("%8s", report_duration(t->ms, text));
	if (r->v->rounds > 1 && t->counts[OUTCOME_FAILED])
		printf("  %" PRIu64 " of %" PRIu64 " rounds, the first is %" PRIu64 ":",
		       t->counts[OUTCOME_FAILED], r->v->rounds, t->round);
	if (*t->worst.text) {
		fputs("  ", stdout);
		terminal_put(t->worst.text);
	}
	putchar('\n');
}

/* Whether all checks of a suite were skipped for one reason, which one line then says. */
static bool is_skipped_whole(const struct report *r, size_t suite)
{
	const struct tally *t = r->v->tallies[suite];

	for (size_t k = 0; r->v->list[suite].checks[k].name; k++) {
		if (t[k].worst.outcome != OUTCOME_SKIPPED ||
		    strcmp(t[k].worst.text, t[0].worst.text) != 0)
			return false;
	}
	return true;
}

static void put_suite(const struct report *r, size_t suite)
{
	if (is_skipped_whole(r, suite)) {
		terminal_print(r->v->list[suite].name, SUITE_COLUMNS);
		terminal_print("all", CHECK_COLUMNS);
		put_outcome(OUTCOME_SKIPPED);
		printf("%8s  %s\n", "", r->v->tallies[suite][0].worst.text);
		return;
	}
	for (size_t k = 0; r->v->list[suite].checks[k].name; k++)
		put_check_row(r, suite, k);
}

static void put_result_table(const struct report *r)
{
	const struct validation *v = r->v;
	uint64_t counts[OUTCOMES];

	terminal_print("suite", SUITE_COLUMNS);
	terminal_print("check", CHECK_COLUMNS);
	terminal_print("result", RESULT_COLUMNS);
	puts("    time");
	for (size_t i = 0; i < v->count; i++) {
		if (v->chosen & SUITE_BIT(i))
			put_suite(r, i);
	}
	validation_counts(v, counts);
	printf("\n%" PRIu64 " passed, %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64
	       " not run\n",
	       counts[OUTCOME_PASSED], counts[OUTCOME_FAILED], counts[OUTCOME_SKIPPED],
	       counts[OUTCOME_NOT_RUN]);
	printf("%s, seed %" PRIu64 ", %" PRIu64 " round%s, %.1f s%s%s\n", v->subject->device,
	       v->subject->seed, v->rounds, v->rounds == 1 ? "" : "s", r->seconds,
	       r->stopped ? "; stopped: " : "", r->stopped ? r->stopped : "");
}

static struct json_object *check_document(const struct validation *v, size_t suite, size_t check)
{
	struct json_object *document = json_object_new_object();
	const struct tally *t = &v->tallies[suite][check];
	const struct finding *f = &t->worst;

	json_add_text(document, "name", v->list[suite].checks[check].name);
	json_add_text(document, "proves", v->list[suite].checks[check].proves);
	json_add_text(document, "result", outcome_word(f->outcome));
	json_add_text(document, "message", *f->text ? f->text : NULL);
	json_add_number(document, "round", t->round);
	json_add_number(document, "passed_rounds", t->counts[OUTCOME_PASSED]);
	json_add_number(document, "failed_rounds", t->counts[OUTCOME_FAILED]);
	json_add_float(document, "ms", t->ms);
	if (f->unit) {
		json_add_float(document, "measured", f->measured);
		json_add_float(document, "limit", f->limit);
		json_add_text(document, "unit", f->unit);
	}
	return document;
}

static struct json_object *suite_document(const struct validation *v, size_t suite)
{
	struct json_object *document = json_object_new_object();
	struct json_object *checks = json_object_new_array();

	json_add_text(document, "name", v->list[suite].name);
	json_add_text(document, "result", outcome_word(validation_suite(v, suite)));
	for (size_t k = 0; v->list[suite].checks[k].name; k++)
		json_object_array_add(checks, check_document(v, suite, k));
	json_object_object_add(document, "checks", checks);
	return document;
}

static int emit_document(const struct report *r)
{
	static const char *const keys[OUTCOMES] = {"passed", "failed", "skipped", "not_run"};
	struct json_object *document = json_document(r->out), *list = json_object_new_array();
	const struct validation *v = r->v;
	uint64_t counts[OUTCOMES];

	validation_counts(v, counts);
	json_object_object_add(document, "device", device_document(&v->subject->info));
	json_add_number(document, "seed", v->subject->seed);
	json_add_number(document, "rounds", v->rounds);
	json_add_float(document, "seconds", r->seconds);
	json_object_object_add(document, "interrupted", json_object_new_boolean(interrupted()));
	json_add_text(document, "stopped", r->stopped);
	for (int i = 0; i < OUTCOMES; i++)
		json_add_number(document, keys[i], counts[i]);
	for (size_t i = 0; i < v->count; i++) {
		if (v->chosen & SUITE_BIT(i))
			json_object_array_add(list, suite_document(v, i));
	}
	json_object_object_add(document, "suites", list);
	return json_emit(document);
}

int report_end(struct report *r)
{
	progress_clear(&r->progress);
	if (r->out->json)
		return emit_document(r);
	if (!r->tap) {
		put_result_table(r);
		return 0;
	}
	if (r->stopped)
		printf("# stopped: %s\n", r->stopped);
	tap_plan(stdout, r->number);
	return 0;
}
