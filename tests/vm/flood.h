/* SPDX-License-Identifier: MIT */
/* Work that does not end, and what becomes of it. */
#ifndef EMBENG_TESTS_FLOOD_H
#define EMBENG_TESTS_FLOOD_H

#include "accel.h"

#define FLOOD_BYTES (64 * 4096u)

/* A thread that rings without end, with a key that comes and goes under it. */
struct flood {
	struct ring ring;
	struct embeng_mem key;
	int stop;
	uint64_t pushed;
};

struct flood flood_of(int fd);
void *flood(void *arg); /* of a thread; ends when it is stopped or its ring is dead */
void flood_stop(struct flood *f);

/* The same by calls, of NOPs. */
struct calls {
	int fd;
	struct ring ring;
	int error; /* that ended it */
	uint64_t pushed;
};

struct calls calls_of(int fd);
void *flood_calls(void *arg); /* of a thread; ends when a call fails, but for want of space */

/* A context that was lost was told, and nothing of it moves any more. */
void accel_check_lost(int fd, struct ring *ring);

/* Good until the next call. */
const char *accel_read_file(const char *path);

/* What is given to a lost context is refused. */
#define LOST(given, request) REFUSED_WITH(given, #request, ESHUTDOWN, fd, request)

#endif
