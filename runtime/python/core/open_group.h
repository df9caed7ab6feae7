/* SPDX-License-Identifier: MIT */
/*
 * An open group of hosts, apart from its Python object: engines over the group, and exchanges of other
 * threads, may outlive that. Nothing here needs Python, and any thread may call.
 */
#ifndef EMBENG_PYTHON_OPEN_GROUP_H
#define EMBENG_PYTHON_OPEN_GROUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "embeng/group.h"

struct open_group {
	struct embeng_group *group; /* usable between enter and leave */
	pthread_mutex_t lock;	    /* the members below; held for moments */
	size_t references;
	size_t users; /* calls under way, and engines */
	bool closed, is_shut;
	bool lent;			    /* to an engine, whose exchanges alone it has then */
	bool taking[EMBENG_GROUP_CHANNELS]; /* a thread copies what came */
};

/* Takes the group. The caller has a reference. Return: NULL without memory. */
struct open_group *open_group_new(struct embeng_group *group);
void open_group_put(struct open_group *open);

/* Begins a use, during which the group stays open. Return: false if it is closed. */
bool open_group_enter(struct open_group *open);
/* The last use of a group that is closed leaves it, which takes up to a third of a second. */
void open_group_leave(struct open_group *open);
/* Lets no use begin any more. A thread that waits for an exchange sees that. */
void open_group_close(struct open_group *open);
bool open_group_is_closed(struct open_group *open);

/*
 * Begins and ends a use by an engine, during which the program makes no exchanges. Return: 0, -EBUSY: another
 * engine has it; -ESHUTDOWN: it is closed.
 */
int open_group_lend(struct open_group *open);
void open_group_return(struct open_group *open);
bool open_group_is_lent(struct open_group *open);

/* Bytes that came in a channel stay there between these two. Return: false if another thread has it. */
bool open_group_begin_taking(struct open_group *open, size_t channel);
void open_group_end_taking(struct open_group *open, size_t channel);

#endif
