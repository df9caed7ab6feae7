/* SPDX-License-Identifier: MIT */
/*
 * Processes made of chance that call the driver for a while: each has threads that act by inputs
 * drawn from a seed. A round is started, meanwhile the caller does as it likes, and then it is
 * ended and judged, which fails the test with the round's seed.
 */
#ifndef EMBENG_TESTS_HOSTILE_ROUNDS_H
#define EMBENG_TESTS_HOSTILE_ROUNDS_H

#include <sys/types.h>

#include "coverage.h"
#include "world.h"

#define ROUND_PATIENCE_NS (120 * SECOND) /* for a call that a deadline does not end */

/**
 * struct round - a process made of chance
 * @seed: its acts are drawn from it
 * @end: time in ns at which it ends
 * @mighty: it may reset the device
 * @user: user that it runs as, 0: root
 * @verdict: memory that it shares with its judge, from round_memory()
 * @coverage: memory of all rounds
 * @process: the process, while it runs
 */
struct round {
	uint64_t seed;
	int64_t end;
	bool mighty;
	uid_t user;
	struct verdict *verdict;
	struct coverage *coverage;
	pid_t process;
};

/* Draws a number from a state, which may be any. */
uint64_t round_draw(uint64_t *state);

/* Memory of zeros that processes share. */
void *round_memory(size_t size);

void round_start(struct round *r);

/* Waits for the end of a round. @killed: it may have been killed. */
void round_finish(struct round *r, bool killed);

/* Kills it, with all processes that it made, before round_finish(). */
void round_kill(const struct round *r);

/* Makes the driver's counters of resets known, from an open file. */
struct embeng_accel_resets round_resets(int fd);

#endif
