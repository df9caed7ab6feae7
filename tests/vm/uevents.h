/* SPDX-License-Identifier: MIT */
/* Checks how the driver reports a rung: uevents and devcoredumps. */
#ifndef EMBENG_TESTS_UEVENTS_H
#define EMBENG_TESTS_UEVENTS_H

/* Listens from now on, and drops dumps of earlier hangs. */
void uevents_start(void);
void uevents_stop(void);

/* Waits for a uevent with this rung and cause; fails the test when none comes. */
void uevents_expect_rung(const char *rung, const char *cause);

/* Reads the dump and drops it; fails the test when there is none. */
const char *devcoredump_take(void);

/* Checks that there is no dump. */
void devcoredump_expect_none(void);

/* Reads what has come so far. Return: the number of uevents about resets. */
int uevents_count(void);

/* Checks that the dump has this text. */
void devcoredump_expect(const char *dump, const char *part);

#endif
