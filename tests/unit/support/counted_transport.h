/* SPDX-License-Identifier: MIT */
/*
 * A transport that counts the messages and bytes of exchanges that a host sends, around another one. Farewells
 * and questions whether a host is alive are not counted: a slow machine has more or fewer of them.
 */
#ifndef EMBENG_TESTS_COUNTED_TRANSPORT_H
#define EMBENG_TESTS_COUNTED_TRANSPORT_H

#include <stdlib.h>

#include "embeng/group.h"

/* Counts are read while no exchange is under way. */
struct counted {
	struct embeng_transport inner;
	uint64_t messages, sent;
};

static inline int counted_post(void *self, struct embeng_message *messages, size_t count, void **op)
{
	struct counted *c = self;

	for (size_t i = 0; i < count; i++) {
		if (messages[i].receive || messages[i].tag >= EMBENG_GROUP_CHANNELS)
			continue;
		__atomic_fetch_add(&c->messages, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&c->sent, messages[i].bytes, __ATOMIC_RELAXED);
	}
	return c->inner.post(c->inner.self, messages, count, op);
}

static inline int counted_test(void *self, void *op)
{
	struct counted *c = self;

	return c->inner.test(c->inner.self, op);
}

static inline int counted_drop(void *self, void *op)
{
	struct counted *c = self;

	return c->inner.drop(c->inner.self, op);
}

static inline void counted_wait(void *self, uint64_t ns)
{
	struct counted *c = self;

	c->inner.wait(c->inner.self, ns);
}

static inline void counted_wake(void *self)
{
	struct counted *c = self;

	c->inner.wake(c->inner.self);
}

static inline void counted_abort(void *self)
{
	struct counted *c = self;

	if (c->inner.abort)
		c->inner.abort(c->inner.self);
}

static inline void counted_close(void *self)
{
	struct counted *c = self;

	c->inner.close(c->inner.self);
}

/* Has @counted, which outlives the group, count what passes through @transport. */
static inline void count_transport(struct embeng_transport *transport, struct counted *counted)
{
	*counted = (struct counted){.inner = *transport};
	transport->self = counted;
	transport->post = counted_post;
	transport->test = counted_test;
	transport->drop = counted_drop;
	transport->wait = counted->inner.wait ? counted_wait : NULL;
	transport->wake = counted->inner.wake ? counted_wake : NULL;
	transport->abort = counted_abort;
	transport->close = counted_close;
}

#endif
