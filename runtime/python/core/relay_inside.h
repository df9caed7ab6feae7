/* SPDX-License-Identifier: MIT */
/*
 * The inside of a relay: messages on their way, by peer and tag. relay.c has the group's side of it and
 * relay_frames.c the program's. All of it is the lock's.
 */
#ifndef EMBENG_PYTHON_RELAY_INSIDE_H
#define EMBENG_PYTHON_RELAY_INSIDE_H

#include <pthread.h>

#include "relay.h"

#define RELAY_SHORT_BYTES 65536u /* most bytes of a message that is copied when it is posted */
#define RELAY_TAGS 16u

/*
 * struct item - a message on its way, or one that came early
 * @message: the group's, or NULL: nobody waits for this one
 * @copy: bytes of a short message
 * @number: its place among those of its tag, from 0
 * @order: its place among all that were sent to its peer
 * @moved: bytes that went out or came; with @error and @done, @message gets it in test()
 */
struct item {
	struct item *next;
	struct embeng_message *message;
	unsigned char *copy;
	uint64_t bytes, moved, number, order;
	int error;
	bool done;
};

struct queue {
	struct item *first, **end;
};

/* All of one tag between this rank and a peer. @ready: receives that the peer has told of. */
struct lane {
	struct queue out, in, early;
	uint64_t sent, posted, ready, arrived;
	uint64_t part; /* bytes that came of a message that is not whole */
	bool tell;     /* the peer does not know yet that @posted receives are there */
};

struct relay_peer {
	struct lane lanes[RELAY_TAGS];
	pthread_cond_t work;
	uint64_t posted;
	bool lost, last_sent, last_came;
};

struct relay_op {
	size_t count;
	struct item *items[];
};

struct relay {
	pthread_mutex_t lock;
	pthread_cond_t event;
	uint32_t rank, ranks;
	int references;
	bool happened, closed;
	struct relay_peer peers[];
};

static inline void append_item(struct queue *queue, struct item *item)
{
	item->next = NULL;
	*queue->end = item;
	queue->end = &item->next;
}

void item_remove(struct queue *queue, const struct item *item);
void item_free(struct item *item);
/* Ends a message, of which the group then hears. */
void item_finish(struct relay *relay, struct queue *queue, struct item *item, int error);

#endif
