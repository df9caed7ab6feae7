/* SPDX-License-Identifier: MIT */
/* How the driver tells of a rung: uevents and devcoredumps. */
#ifndef EMBENG_TESTS_TOLD_H
#define EMBENG_TESTS_TOLD_H

/* Listens from now on; drops what is kept of earlier hangs. */
void told_start(void);
void told_stop(void);

/* A uevent of the driver's node with this rung and cause; fails the test when none comes. */
void told_rung(const char *rung, const char *cause);

/* The kept coredump, dropped with this call; fails the test when there is none. */
const char *told_dump(void);

/* The dump has this text. */
void told_has(const char *dump, const char *part);

#endif
