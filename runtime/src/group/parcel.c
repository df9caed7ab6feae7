// SPDX-License-Identifier: MIT
/*
 * Parcels: messages that are posted together, with the memory that they touch. They are a file
 * because that memory has one rule: the transport may touch it until the parcel is dropped, and if
 * the transport cannot promise to stop, it is never freed.
 *
 * Only the service thread calls, but for parcel_new().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "group.h"

struct parcel *parcel_new(size_t count, size_t bytes, void **room)
{
	const size_t head = sizeof(struct parcel) + count * sizeof(struct embeng_message);
	struct parcel *p = malloc(head + bytes);

	if (!p) {
		fail(-ENOMEM, "there is no memory for %zu messages of a group", count);
		return NULL;
	}
	memset(p, 0, head);
	p->messages = (struct embeng_message *)(p + 1);
	p->count = count;
	if (room)
		*room = (char *)p + head;
	return p;
}

/* A transport may return any number; a group returns errors below 0 alone. */
static int errno_of_transport(int ret)
{
	return ret > 0 ? -EIO : ret;
}

/* The other hosts return this sentence, too, so it says whose transport it is. */
static int fail_transport(const struct embeng_group *g, int ret, const char *what)
{
	char own[GROUP_HOST_WORDS];

	return fail(errno_of_transport(ret), "the transport of %s %s", host_words(g, g->rank, own),
		    what);
}

int parcel_post(struct embeng_group *g, struct parcel *p)
{
	int ret = p->count ? g->transport.post(g->transport.self, p->messages, p->count, &p->op)
			   : 0;

	if (ret)
		p->op = NULL;
	return ret ? fail_transport(g, ret, "cannot begin a message") : 0;
}

int parcel_check(const struct embeng_group *g, const struct embeng_message *m)
{
	char what[GROUP_HOST_WORDS + 32], who[GROUP_HOST_WORDS];

	if (!m->done || !m->error)
		return 0;
	snprintf(what, sizeof(what), "%s %s",
		 m->receive ? "got no message from" : "brought no message to",
		 host_words(g, m->peer, who));
	return fail_transport(g, m->error, what);
}

int parcel_test(struct embeng_group *g, struct parcel *p)
{
	int ret = p->op ? g->transport.test(g->transport.self, p->op) : 0;

	if (ret)
		return fail_transport(g, ret, "cannot move messages on");
	for (size_t i = 0; !ret && i < p->count; i++)
		ret = parcel_check(g, &p->messages[i]);
	return ret;
}

bool parcel_done(const struct parcel *p)
{
	for (size_t i = 0; i < p->count; i++) {
		if (!p->messages[i].done)
			return false;
	}
	return true;
}

void parcel_drop(struct embeng_group *g, struct parcel **at)
{
	struct parcel *p = *at;

	*at = NULL;
	if (p && !(p->op && g->transport.drop(g->transport.self, p->op) == -EBUSY))
		free(p);
}

void parcel_finish(struct embeng_group *g, struct parcel *p)
{
	if (p && p->op)
		g->transport.drop(g->transport.self, p->op);
	if (p)
		p->op = NULL;
}
