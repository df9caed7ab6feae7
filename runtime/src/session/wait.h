/* SPDX-License-Identifier: MIT */
/* Deadlines, and waiting for the engine. */
#ifndef EMBENG_WAIT_H
#define EMBENG_WAIT_H

#include "session.h"

struct deadline {
	bool poll;    /* stop waiting when the engine reports that nothing can move */
	bool program; /* the wait may be for what the program does: embeng_interrupt() ends it */
	bool lookups; /* it is for lookups of other replicas, and for no gradients */
	uint64_t at;  /* monotonic ns; UINT64_MAX: never */
};

/* Makes a deadline from a timeout of the public interface: 0 polls, negative is no limit. */
struct deadline deadline_in(int64_t timeout_ns);
/* The deadline for a wait that ends without the program doing anything. */
struct deadline deadline_never(void);
bool deadline_is_never(struct deadline deadline);

/*
 * wait_until() - run and wait until @ready says so
 *
 * e->lock is held at the call and at the return, not in between; @ready is called
 * with it. Return: 0, -ETIME or -EDEADLK (no sentence: the caller knows what is missing), or
 * -EINTR, -ENODEV or -ESHUTDOWN with one.
 */
int wait_until(struct embeng *e, bool (*ready)(struct embeng *e, void *arg), void *arg,
	       struct deadline deadline);

/* Whether wait_until() returned an error that has no sentence yet. */
static inline bool wait_is_over(int ret)
{
	return ret == -ETIME || ret == -EDEADLK;
}

/* The end of the sentence of such an error: advice, or nothing. */
const char *wait_advice(int ret);

/*
 * Checks a command that has ended. Return: 0; if it was aborted, the result of session_lost(), once
 * no reset is under way. A reset aborts commands before it can be noticed.
 */
int session_aborted(struct embeng *e, const struct request *request);

/* Return: 0, or -ENODEV or -ESHUTDOWN with a sentence if nothing will complete any more. */
int session_lost(struct embeng *e);

/*
 * Return: 0, or why an accepted update is not in the tables. A loss of the device, which may
 * follow from the same fault, is reported instead, because it matters more.
 */
int session_failed(struct embeng *e);

/* Waits until one request is done, like wait_until(). */
int wait_done(struct embeng *e, struct request *request, struct deadline deadline);

#endif
