/* SPDX-License-Identifier: MIT */
/* A fault of a process in the middle of an exchange of its group. */
#ifndef EMBENG_TESTS_MPI_FAULT_H
#define EMBENG_TESTS_MPI_FAULT_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group/wire.h"
#include "stop.h"

#define FAULT_SLOW_US 1500000

/**
 * struct fault - a fault of this rank, in an exchange
 * @kind: kill, stop, exit, skip, slow or run; NULL: none
 * @phase: name of the exchange; @step: its step, 0: any
 * @which: number of the exchange among those of this phase and step, from 1
 * @command: for run: what a shell runs
 * @met: exchanges of this phase and step so far
 * @inner: the transport that carries the messages
 */
struct fault {
	const char *kind, *phase, *command;
	uint64_t step;
	uint32_t which, met;
	struct embeng_transport inner;
};

/* The header of the first message that begins an exchange of the fault's phase, or NULL. */
static inline struct wire_header *find_header(const struct fault *f,
					      const struct embeng_message *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct wire_header *h = messages[i].data;

		if (messages[i].receive || messages[i].tag >= WIRE_CONTROL_TAG ||
		    messages[i].bytes < sizeof(*h) || h->magic != WIRE_MAGIC ||
		    h->kind != WIRE_EXCHANGE)
			continue;
		if ((!f->step || h->step == f->step) && !strcmp(h->phase, f->phase))
			return h;
	}
	return NULL;
}

/* All messages of an exchange tell that this host is a step ahead. */
static inline void skip_step(const struct embeng_message *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct wire_header *h = messages[i].data;

		if (messages[i].receive || messages[i].bytes < sizeof(*h) || h->magic != WIRE_MAGIC)
			continue;
		h->step++;
		h->crc = 0;
		wire_seal(h);
	}
}

static inline int fault_post(void *self, struct embeng_message *messages, size_t count, void **op)
{
	struct fault *f = self;

	if (f->kind && find_header(f, messages, count) && ++f->met == f->which) {
		if (!strcmp(f->kind, "kill"))
			raise(SIGKILL);
		if (!strcmp(f->kind, "exit"))
			_exit(0);
		if (!strcmp(f->kind, "stop"))
			stop_process();
		if (!strcmp(f->kind, "slow"))
			usleep(FAULT_SLOW_US);
		if (!strcmp(f->kind, "skip"))
			skip_step(messages, count);
		if (!strcmp(f->kind, "run") && system(f->command))
			_exit(5);
	}
	return f->inner.post(f->inner.self, messages, count, op);
}

static inline int fault_test(void *self, void *op)
{
	const struct fault *f = self;

	return f->inner.test(f->inner.self, op);
}

static inline int fault_drop(void *self, void *op)
{
	const struct fault *f = self;

	return f->inner.drop(f->inner.self, op);
}

static inline void fault_abort(void *self)
{
	const struct fault *f = self;

	if (f->inner.abort)
		f->inner.abort(f->inner.self);
}

static inline void fault_close(void *self)
{
	const struct fault *f = self;

	f->inner.close(f->inner.self);
}

/* Puts the fault between a group and its transport, which needs no wait() then. */
static inline void fault_wrap(struct fault *f, struct embeng_transport *transport)
{
	f->inner = *transport;
	transport->self = f;
	transport->post = fault_post;
	transport->test = fault_test;
	transport->drop = fault_drop;
	transport->wait = NULL;
	transport->wake = NULL;
	transport->abort = fault_abort;
	transport->close = fault_close;
}

#endif
