/* SPDX-License-Identifier: MIT */
/* Running suites in rounds, with what came of each check over all rounds. */
#ifndef CLI_VALIDATE_ROUNDS_H
#define CLI_VALIDATE_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "suites.h"

/* Most checks of a suite. */
#define TALLY_CHECKS 8

/**
 * struct tally - one check over all rounds
 * @counts: rounds by outcome
 * @ms: time of all rounds
 * @worst: the finding that stands for all of them: that of the first failed round, else that of the
 *	first that was not run, else the newest
 * @round: round of @worst, from 1; 0: the check had no round
 */
struct tally {
	uint64_t counts[OUTCOMES];
	double ms;
	struct finding worst;
	uint64_t round;
};

/* Adds what a round found to a tally. */
void tally_add(struct tally *t, const struct finding *f, uint64_t round, double ms);

/**
 * struct validation - a call: what is to run, and what came of it
 * @list: [@count] suites
 * @chosen: bits of the suites that are to run
 * @explain: NULL, or returns the index of a suite whose part of the device made a check of suite
 *	@suite fail, with the reason in words, or -1 if the suite's own part did
 * @began: NULL, or called before each check
 * @ended: NULL, or called with each finding
 * @arg: first argument of these three
 * @failed: bits of the suites that failed in the round that runs
 * @rounds: rounds that were begun
 */
struct validation {
	const struct suite *list;
	size_t count;
	uint32_t chosen;
	struct subject *subject;
	int (*explain)(void *arg, size_t suite, char *text, size_t size);
	void (*began)(void *arg, size_t suite, size_t check);
	void (*ended)(void *arg, size_t suite, size_t check, const struct finding *f, double ms);
	void *arg;
	uint32_t failed;
	uint64_t rounds;
	struct tally tallies[SUITES][TALLY_CHECKS];
};

/* Runs each chosen suite once, those whose needs failed excepted. */
void validation_round(struct validation *v);

/* The outcome of a suite over all rounds: failed, not run, passed, or skipped if all checks were. */
enum outcome validation_suite(const struct validation *v, size_t suite);

/* Whether a check failed, or was not run for another reason than an interruption. */
bool validation_failed(const struct validation *v);

/* Checks by outcome, each counted once whatever the number of rounds. */
void validation_counts(const struct validation *v, uint64_t counts[OUTCOMES]);

#endif
