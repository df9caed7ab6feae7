// SPDX-License-Identifier: MIT
/* The rounds of embeng validate: suites after a failed one, and the result of several rounds. */
#include <stdio.h>
#include <string.h>

#include "runtime/cli/validate/rounds.h"
#include "suite.h"

static struct finding script[4];
static unsigned int ran;
static struct validation v;
static struct subject subject;

static void play(const struct finding *from, struct finding *f, unsigned int bit)
{
	ran |= bit;
	*f = *from;
}

static void first(const struct subject *s, struct finding *f)
{
	(void)s;
	play(&script[0], f, 1);
}

static void second(const struct subject *s, struct finding *f)
{
	(void)s;
	play(&script[1], f, 2);
}

static void third(const struct subject *s, struct finding *f)
{
	(void)s;
	play(&script[2], f, 4);
}

static void fourth(const struct subject *s, struct finding *f)
{
	(void)s;
	play(&script[3], f, 8);
}

/* The last one needs the second, and by that the first. */
static const struct check base_checks[] = {
	{"a", "", first, CHECK_ANYWHERE}, {"board", "", first, CHECK_BOARD}, {0}};
static const struct check middle_checks[] = {{"b", "", second, CHECK_ANYWHERE}, {0}};
static const struct check other_checks[] = {{"c", "", third, CHECK_ANYWHERE}, {0}};
static const struct check last_checks[] = {
	{"d", "", fourth, CHECK_ANYWHERE}, {"absent", "", NULL, CHECK_ANYWHERE}, {0}};
static const struct suite list[] = {
	{.name = "base", .checks = base_checks},
	{.name = "middle", .checks = middle_checks, .needs = SUITE_BIT(0)},
	{.name = "other", .checks = other_checks},
	{.name = "last", .checks = last_checks, .needs = SUITE_BIT(1), .disturbs = true},
};

static void setup(void)
{
	memset(script, 0, sizeof(script));
	memset(&v, 0, sizeof(v));
	subject = (struct subject){.soft = true, .allow_reset = true};
	ran = 0;
	v.list = list;
	v.count = 4;
	v.chosen = 15;
	v.subject = &subject;
}

static void fail_at(size_t k)
{
	script[k] = (struct finding){0};
	finding_fail(&script[k], "broken %zu", k);
}

static void expect(size_t suite, size_t check, enum outcome outcome, const char *text)
{
	const struct tally *t = &v.tallies[suite][check];

	ck_assert_int_eq(t->worst.outcome, outcome);
	ck_assert_str_eq(t->worst.text, text);
}

START_TEST(all_pass)
{
	validation_round(&v);
	ck_assert_uint_eq(ran, 15);
	expect(0, 0, OUTCOME_PASSED, "");
	expect(0, 1, OUTCOME_SKIPPED, "not on a soft device");
	expect(3, 1, OUTCOME_SKIPPED, "this build has no devices of the kernel driver");
	ck_assert(!validation_failed(&v));
	ck_assert_int_eq(validation_suite(&v, 0), OUTCOME_PASSED);
}
END_TEST

START_TEST(a_suite_that_needs_a_failed_one_is_not_run)
{
	uint64_t counts[OUTCOMES];

	fail_at(0);
	validation_round(&v);
	ck_assert_uint_eq(ran, 1 | 4);
	expect(1, 0, OUTCOME_NOT_RUN, "suite base failed");
	expect(2, 0, OUTCOME_PASSED, "");
	/* The reason is what failed, and not what was not run. */
	expect(3, 0, OUTCOME_NOT_RUN, "suite base failed");
	validation_counts(&v, counts);
	ck_assert_uint_eq(counts[OUTCOME_PASSED], 1);
	ck_assert_uint_eq(counts[OUTCOME_FAILED], 1);
	ck_assert_uint_eq(counts[OUTCOME_SKIPPED], 2);
	ck_assert_uint_eq(counts[OUTCOME_NOT_RUN], 2);
	ck_assert_int_eq(validation_suite(&v, 0), OUTCOME_FAILED);
	ck_assert_int_eq(validation_suite(&v, 3), OUTCOME_NOT_RUN);
	ck_assert(validation_failed(&v));
}
END_TEST

START_TEST(suites_that_are_not_chosen_count_for_nothing)
{
	fail_at(0);
	v.chosen = 2;
	validation_round(&v);
	ck_assert_uint_eq(ran, 2);
	ck_assert(!validation_failed(&v));
}
END_TEST

START_TEST(a_suite_that_disturbs_others_needs_consent)
{
	subject.allow_reset = false;
	validation_round(&v);
	ck_assert_uint_eq(ran, 7);
	ck_assert_int_eq(validation_suite(&v, 3), OUTCOME_SKIPPED);
	ck_assert_ptr_nonnull(strstr(v.tallies[3][0].worst.text, "--allow-reset"));
	ck_assert(!validation_failed(&v));
}
END_TEST

START_TEST(a_failed_round_stands_for_all)
{
	validation_round(&v);
	fail_at(1);
	validation_round(&v);
	script[1] = (struct finding){0};
	finding_fail(&script[1], "broken later");
	validation_round(&v);
	script[1] = (struct finding){0};
	validation_round(&v);
	expect(1, 0, OUTCOME_FAILED, "broken 1");
	ck_assert_uint_eq(v.tallies[1][0].round, 2);
	ck_assert_uint_eq(v.tallies[1][0].counts[OUTCOME_PASSED], 2);
	ck_assert_uint_eq(v.tallies[1][0].counts[OUTCOME_FAILED], 2);
	/* A round that fails keeps nothing from running in the next one. */
	ck_assert_uint_eq(v.tallies[3][0].counts[OUTCOME_PASSED], 2);
	expect(3, 0, OUTCOME_NOT_RUN, "suite middle failed");
	ck_assert_uint_eq(v.rounds, 4);
	ck_assert_uint_eq(subject.round, 4);
}
END_TEST

static int blame_other(void *arg, size_t suite, char *text, size_t size)
{
	(void)arg;
	snprintf(text, size, "it was hot");
	return suite == 2 ? -1 : 2;
}

START_TEST(a_failure_of_another_part_is_that_parts)
{
	fail_at(0);
	fail_at(2);
	v.explain = blame_other;
	validation_round(&v);
	expect(0, 0, OUTCOME_NOT_RUN, "it was hot during this check; suite other judges that");
	expect(2, 0, OUTCOME_FAILED, "broken 2");
	ck_assert_int_eq(validation_suite(&v, 0), OUTCOME_NOT_RUN);
	/* The suite that is to judge is not among the chosen ones. */
	setup();
	fail_at(0);
	v.explain = blame_other;
	v.chosen = 1;
	validation_round(&v);
	expect(0, 0, OUTCOME_FAILED, "broken 0");
}
END_TEST

START_TEST(the_first_thing_decides_a_finding)
{
	struct finding f = {0};

	finding_note(&f, "fine");
	ck_assert_str_eq(f.text, "fine");
	finding_fail(&f, "one");
	finding_skip(&f, "two");
	finding_fail(&f, "three");
	finding_note(&f, "four");
	ck_assert_int_eq(f.outcome, OUTCOME_FAILED);
	ck_assert_str_eq(f.text, "one");
}
END_TEST

/* A suite stands behind those that it needs, and has room for its tallies. */
START_TEST(the_table_is_in_order)
{
	for (size_t i = 0; i < SUITES; i++) {
		ck_assert_uint_eq(suites[i].needs >> i, 0);
		ck_assert_uint_le(suite_check_count(&suites[i]), TALLY_CHECKS);
		ck_assert_int_eq(suite_find(suites[i].name), (int)i);
		ck_assert_ptr_null(suite_set_find(suites[i].name));
	}
	ck_assert_int_eq(suite_find("quick"), -1);
	ck_assert_ptr_nonnull(suite_set_find("soak"));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, all_pass);
	tcase_add_test(tcase, a_suite_that_needs_a_failed_one_is_not_run);
	tcase_add_test(tcase, suites_that_are_not_chosen_count_for_nothing);
	tcase_add_test(tcase, a_suite_that_disturbs_others_needs_consent);
	tcase_add_test(tcase, a_failed_round_stands_for_all);
	tcase_add_test(tcase, a_failure_of_another_part_is_that_parts);
	tcase_add_test(tcase, the_first_thing_decides_a_finding);
	tcase_add_test(tcase, the_table_is_in_order);
}

int main(void)
{
	return suite_main("validate_rounds", add);
}
