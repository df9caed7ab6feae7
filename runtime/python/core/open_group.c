// SPDX-License-Identifier: MIT
/*
 * The life of an open group, apart from its Python object. It is a file of its own because it must not
 * need Python: an engine over the group may be closed by a thread that has no interpreter.
 *
 * A group is left when close() was called (or its object is freed) and nobody uses it any more. Its lock
 * is held for moments. The memory lives as long as a reference.
 */
#include "open_group.h"

#include <errno.h>
#include <stdlib.h>

struct open_group *open_group_new(struct embeng_group *group)
{
	struct open_group *open = calloc(1, sizeof(*open));

	if (!open)
		return NULL;
	open->group = group;
	open->references = 1;
	pthread_mutex_init(&open->lock, NULL);
	return open;
}

void open_group_put(struct open_group *open)
{
	bool last;

	pthread_mutex_lock(&open->lock);
	last = !--open->references;
	pthread_mutex_unlock(&open->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&open->lock);
	free(open);
}

bool open_group_enter(struct open_group *open)
{
	bool entered;

	pthread_mutex_lock(&open->lock);
	entered = !open->closed;
	open->users += entered;
	open->references += entered;
	pthread_mutex_unlock(&open->lock);
	return entered;
}

/* Called with the lock, which it gives back. */
static void shut_unused_group(struct open_group *open)
{
	const bool last = open->closed && !open->users && !open->is_shut;

	open->is_shut |= last;
	pthread_mutex_unlock(&open->lock);
	if (last)
		embeng_group_close(open->group);
}

void open_group_leave(struct open_group *open)
{
	pthread_mutex_lock(&open->lock);
	open->users--;
	shut_unused_group(open);
	open_group_put(open);
}

void open_group_close(struct open_group *open)
{
	pthread_mutex_lock(&open->lock);
	open->closed = true;
	shut_unused_group(open);
}

bool open_group_is_closed(struct open_group *open)
{
	bool closed;

	pthread_mutex_lock(&open->lock);
	closed = open->closed;
	pthread_mutex_unlock(&open->lock);
	return closed;
}

int open_group_lend(struct open_group *open)
{
	int ret = 0;

	pthread_mutex_lock(&open->lock);
	if (open->closed)
		ret = -ESHUTDOWN;
	else if (open->lent)
		ret = -EBUSY;
	open->lent |= !ret;
	open->users += !ret;
	open->references += !ret;
	pthread_mutex_unlock(&open->lock);
	return ret;
}

void open_group_return(struct open_group *open)
{
	pthread_mutex_lock(&open->lock);
	open->lent = false;
	pthread_mutex_unlock(&open->lock);
	open_group_leave(open);
}

bool open_group_is_lent(struct open_group *open)
{
	bool lent;

	pthread_mutex_lock(&open->lock);
	lent = open->lent;
	pthread_mutex_unlock(&open->lock);
	return lent;
}

bool open_group_begin_taking(struct open_group *open, size_t channel)
{
	bool begun;

	pthread_mutex_lock(&open->lock);
	begun = !open->taking[channel];
	open->taking[channel] = true;
	pthread_mutex_unlock(&open->lock);
	return begun;
}

void open_group_end_taking(struct open_group *open, size_t channel)
{
	pthread_mutex_lock(&open->lock);
	open->taking[channel] = false;
	pthread_mutex_unlock(&open->lock);
}
