/* SPDX-License-Identifier: MIT */
/* Work that does not end, and checks of its fate. */
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
void *flood(void *arg); /* body of a thread; ends when it is stopped or its ring is dead */
void flood_stop(struct flood *f);

/* A thread that submits NOPs by ioctls without end. */
struct calls {
	int fd;
	struct ring ring;
	int error; /* error that ended it */
	uint64_t pushed;
};

struct calls calls_of(int fd);
void *flood_calls(void *arg); /* body of a thread; ends with a failed call, not for lack of space */

/* Checks that a lost context was told of it, and that nothing of it moves any more. */
void accel_check_lost(int fd, struct ring *ring);

/* Reads a file. The text is valid until the next call. */
const char *accel_read_file(const char *path);

/* Checks that a lost context refuses a request. */
#define LOST(given, request) REFUSED_WITH(given, #request, ESHUTDOWN, fd, request)

#endif
