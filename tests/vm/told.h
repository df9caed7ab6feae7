/* SPDX-License-Identifier: MIT */
/* Checks how the driver reports a rung: uevents and devcoredumps. */
#ifndef EMBENG_TESTS_TOLD_H
#define EMBENG_TESTS_TOLD_H

/* Listens from now on, and drops dumps of earlier hangs. */
void told_start(void);
void told_stop(void);

/* Waits for a uevent with this rung and cause; fails the test when none comes. */
void told_rung(const char *rung, const char *cause);

/* Reads the dump and drops it; fails the test when there is none. */
const char *told_dump(void);

/* Checks that the dump has this text. */
void told_has(const char *dump, const char *part);

#endif
