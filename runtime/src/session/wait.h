/* SPDX-License-Identifier: MIT */
/* Deadlines, and waiting for the engine. */
#ifndef EMBENG_WAIT_H
#define EMBENG_WAIT_H

#include "session.h"

struct deadline {
	bool poll;  /* end when the engine reports that nothing can move */
	uint64_t at; /* monotonic ns; UINT64_MAX: never */
};

/* From a timeout of the interface: 0 polls, negative has no limit. */
struct deadline deadline_in(int64_t timeout_ns);
/* For what ends by itself, without the program. */
struct deadline deadline_never(void);
bool deadline_is_never(struct deadline deadline);

/*
 * wait_until() - run and wait until @ready says so
 *
 * e->lock held at the call and at the return, not in between; @ready is called
 * with it. Return: 0, -ETIME (no sentence: the caller knows what is missing), or
 * -ENODEV or -ESHUTDOWN with one.
 */
int wait_until(struct embeng *e, bool (*ready)(struct embeng *e, void *arg), void *arg,
	       struct deadline deadline);

/*
 * For a command that ended: 0, or if it was aborted as session_lost(), once no reset is under
 * way. A reset aborts what it finds before it tells of itself.
 */
int session_aborted(struct embeng *e, const struct request *request);

/* 0, or -ENODEV or -ESHUTDOWN with a sentence: nothing will complete any more. */
int session_lost(struct embeng *e);

/*
 * 0, or why an update that was taken is not in the tables. The loss of the device, which may
 * follow from the same fault, is the greater news and is told instead.
 */
int session_failed(struct embeng *e);

/* wait_until() for one request. */
int wait_done(struct embeng *e, struct request *request, struct deadline deadline);

#endif
