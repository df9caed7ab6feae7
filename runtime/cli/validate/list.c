// SPDX-License-Identifier: MIT
/*
 * `embeng validate --list`: what each suite and each set proves, and how long it takes, as text or
 * as a document. It asks no device.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../frame/terminal.h"
#include "report.h"

enum { NAME_COLUMNS = 12 };

/* A suite of which everything is skipped takes no time. */
static const char *listed_duration(uint32_t ms, char text[REPORT_DURATION])
{
	return ms ? report_duration(ms, text) : "-";
}

static uint32_t add_members(uint32_t members, bool board, bool full)
{
	uint32_t ms = 0;

	for (int i = 0; i < SUITES; i++) {
		if (members & SUITE_BIT(i))
			ms += (board ? suites[i].board_ms : suites[i].soft_ms)[full];
	}
	return ms;
}

static void list_line(const char *name, uint32_t members, bool full, const char *proves)
{
	char soft[REPORT_DURATION], board[REPORT_DURATION];

	terminal_print(name, NAME_COLUMNS);
	printf("%8s  %8s  %s\n", listed_duration(add_members(members, false, full), soft),
	       listed_duration(add_members(members, true, full), board), proves);
}

static void list_text(void)
{
	terminal_print("set", NAME_COLUMNS);
	puts("    soft  emulator");
	for (int i = 0; i < SUITE_SETS; i++)
		list_line(suite_sets[i].name, suite_sets[i].members, suite_sets[i].full,
			  suite_sets[i].proves);
	putchar('\n');
	terminal_print("suite", NAME_COLUMNS);
	puts("    soft  emulator");
	for (int i = 0; i < SUITES; i++) {
		list_line(suites[i].name, SUITE_BIT(i), true, suites[i].proves);
		for (const struct check *check = suites[i].checks; check->name; check++) {
			printf("  ");
			terminal_print(check->name, NAME_COLUMNS - 2);
			printf("%20s%s\n", "", check->proves);
		}
	}
	puts("\nTimes are those of one round, measured on a soft device with two cores, and on "
	     "the\n"
	     "emulator in a virtual machine without KVM, there with --mib 1 for all but quick.\n"
	     "\"-\": the suite has no meaning there.");
}

static struct json_object *listed_checks(const struct suite *suite)
{
	struct json_object *list = json_object_new_array();

	for (const struct check *check = suite->checks; check->name; check++) {
		struct json_object *document = json_object_new_object();

		json_add_text(document, "name", check->name);
		json_add_text(document, "proves", check->proves);
		json_object_array_add(list, document);
	}
	return list;
}

static struct json_object *listed_suite(const struct suite *suite)
{
	struct json_object *document = json_object_new_object(), *needs = json_object_new_array();

	for (int i = 0; i < SUITES; i++) {
		if (suite->needs & SUITE_BIT(i))
			json_object_array_add(needs, json_object_new_string(suites[i].name));
	}
	json_add_text(document, "name", suite->name);
	json_add_text(document, "proves", suite->proves);
	json_object_object_add(document, "needs", needs);
	json_object_object_add(document, "disturbs", json_object_new_boolean(suite->disturbs));
	json_add_number(document, "soft_ms", suite->soft_ms[1]);
	json_add_number(document, "emulator_ms", suite->board_ms[1]);
	json_object_object_add(document, "checks", listed_checks(suite));
	return document;
}

static struct json_object *listed_set(const struct suite_set *set)
{
	struct json_object *document = json_object_new_object(), *members = json_object_new_array();

	for (int i = 0; i < SUITES; i++) {
		if (set->members & SUITE_BIT(i))
			json_object_array_add(members, json_object_new_string(suites[i].name));
	}
	json_add_text(document, "name", set->name);
	json_add_text(document, "proves", set->proves);
	json_object_object_add(document, "members", members);
	return document;
}

int report_list(const struct output *out)
{
	struct json_object *document, *list, *sets;

	if (!out->json) {
		list_text();
		return 0;
	}
	document = json_document(out);
	list = json_object_new_array();
	sets = json_object_new_array();
	for (int i = 0; i < SUITE_SETS; i++)
		json_object_array_add(sets, listed_set(&suite_sets[i]));
	for (int i = 0; i < SUITES; i++)
		json_object_array_add(list, listed_suite(&suites[i]));
	json_object_object_add(document, "sets", sets);
	json_object_object_add(document, "suites", list);
	return json_emit(document);
}
