// SPDX-License-Identifier: MIT
/*
 * Runs suites in their order, decides which are not worth running because of what failed before,
 * and keeps what each check found over all rounds.
 *
 * A round is one pass over the chosen suites. A failure in an earlier round keeps no suite from
 * running in the next one. Nothing here knows what a check does, so that tests bring suites of their
 * own.
 */
#include "rounds.h"

#include <stdio.h>

#include "../bench/clock.h"
#include "../frame/interrupt.h"

/* How much an outcome says about all rounds. */
static int outcome_weight(enum outcome outcome)
{
	static const int weights[OUTCOMES] = {1, 3, 0, 2};

	return weights[outcome];
}

void tally_add(struct tally *t, const struct finding *f, uint64_t round, double ms)
{
	int before = t->round ? outcome_weight(t->worst.outcome) : -1;
	int now = outcome_weight(f->outcome);

	t->counts[f->outcome]++;
	t->ms += ms;
	if (now < before || (now == before && now >= outcome_weight(OUTCOME_NOT_RUN)))
		return;
	t->worst = *f;
	t->round = round;
}

/* Bits of the suites that a suite needs, and of those that these need. */
static uint32_t collect_needs(const struct validation *v, size_t suite)
{
	uint32_t needs = v->list[suite].needs;

	for (size_t i = 0; i < v->count; i++) {
		if (v->list[suite].needs & SUITE_BIT(i))
			needs |= collect_needs(v, i);
	}
	return needs;
}

/* The first suite that this one needs and that failed in this round, or -1. */
static int find_failed_need(const struct validation *v, size_t suite)
{
	uint32_t failed = collect_needs(v, suite) & v->failed;

	return failed ? __builtin_ctz(failed) : -1;
}

/* A failure that another part of the device brought about is that part's. */
static void explain_finding(const struct validation *v, size_t suite, struct finding *f)
{
	char why[FINDING_TEXT / 4];
	int other;

	if (f->outcome != OUTCOME_FAILED || !v->explain)
		return;
	other = v->explain(v->arg, suite, why, sizeof(why));
	if (other < 0 || (size_t)other == suite || !(v->chosen & SUITE_BIT(other)))
		return;
	*f = (struct finding){0};
	finding_not_run(f, "%s during this check; suite %s judges that", why, v->list[other].name);
}

static void run_check(const struct validation *v, size_t suite, const struct check *check,
		      struct finding *f)
{
	const struct subject *s = v->subject;
	int failed = find_failed_need(v, suite);

	if (finding_interrupted(f))
		return;
	if (s->soft && check->place == CHECK_BOARD)
		finding_skip(f, "not on a soft device");
	else if (!s->soft && check->place == CHECK_SOFT)
		finding_skip(f, "only on a soft device");
	else if (v->list[suite].disturbs && !s->allow_reset)
		finding_skip(f, "other programs would lose their tables; --allow-reset runs it");
	else if (!check->run)
		finding_skip(f, "this build has no devices of the kernel driver");
	else if (failed >= 0)
		finding_not_run(f, "suite %s failed", v->list[failed].name);
	else
		check->run(s, f);
	explain_finding(v, suite, f);
}

static void run_suite(struct validation *v, size_t suite)
{
	const struct check *checks = v->list[suite].checks;
	bool failed = false;

	for (size_t k = 0; checks[k].name; k++) {
		struct finding f = {0};
		double began = now_ms(), ms;

		if (v->began)
			v->began(v->arg, suite, k);
		run_check(v, suite, &checks[k], &f);
		ms = now_ms() - began;
		tally_add(&v->tallies[suite][k], &f, v->rounds, ms);
		failed |= f.outcome == OUTCOME_FAILED;
		if (v->ended)
			v->ended(v->arg, suite, k, &f, ms);
	}
	if (failed)
		v->failed |= SUITE_BIT(suite);
}

void validation_round(struct validation *v)
{
	v->rounds++;
	v->subject->round = v->rounds;
	v->failed = 0;
	for (size_t i = 0; i < v->count; i++) {
		if (v->chosen & SUITE_BIT(i))
			run_suite(v, i);
	}
}

enum outcome validation_suite(const struct validation *v, size_t suite)
{
	enum outcome worst = OUTCOME_SKIPPED;

	for (size_t k = 0; v->list[suite].checks[k].name; k++) {
		enum outcome outcome = v->tallies[suite][k].worst.outcome;

		if (outcome_weight(outcome) > outcome_weight(worst))
			worst = outcome;
	}
	return worst;
}

void validation_counts(const struct validation *v, uint64_t counts[OUTCOMES])
{
	for (int i = 0; i < OUTCOMES; i++)
		counts[i] = 0;
	for (size_t i = 0; i < v->count; i++) {
		if (!(v->chosen & SUITE_BIT(i)))
			continue;
		for (size_t k = 0; v->list[i].checks[k].name; k++)
			counts[v->tallies[i][k].worst.outcome]++;
	}
}

bool validation_failed(const struct validation *v)
{
	uint64_t counts[OUTCOMES];

	validation_counts(v, counts);
	return counts[OUTCOME_FAILED] || (counts[OUTCOME_NOT_RUN] && !interrupted());
}
