// SPDX-License-Identifier: MIT
/*
 * A transport of a group whose messages threads of the program carry; relay.h has its two sides, and this
 * file has the group's. It must not need Python: the thread of a group would else wait for the
 * interpreter's lock, and could not take it while the interpreter ends.
 *
 * A short message is copied when it is posted, and waits at its receiver if it comes too early. A long
 * one goes out once its receiver has said that the room for it is posted, in many frames that are
 * copied one by one, so that a message may be dropped at any time.
 *
 * One lock holds for all, and is held for the copy of a frame at most. A relay lives until the transport
 * is closed and the program has given its reference back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "relay_inside.h"

/* -- queues -------------------------------------------------------------------------- */

void item_remove(struct queue *queue, const struct item *item)
{
	struct item **at = &queue->first;

	while (*at && *at != item)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = item->next;
	if (!*at)
		queue->end = at;
}

void item_free(struct item *item)
{
	free(item->copy);
	free(item);
}

static void init_queue(struct queue *queue)
{
	queue->end = &queue->first;
}

/* The group's thread looks again. */
static void ring_group(struct relay *relay)
{
	relay->happened = true;
	pthread_cond_signal(&relay->event);
}

void item_finish(struct relay *relay, struct queue *queue, struct item *item, int error)
{
	item_remove(queue, item);
	item->error = error;
	item->done = true;
	if (item->message)
		ring_group(relay);
	else
		item_free(item);
}

/* -- the group's side ------------------------------------------------------------------ */

static struct item *make_item(struct embeng_message *m)
{
	struct item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->message = m;
	item->bytes = m->bytes;
	if (m->receive || m->bytes > RELAY_SHORT_BYTES)
		return item;
	item->copy = malloc(m->bytes ? m->bytes : 1);
	if (!item->copy) {
		free(item);
		return NULL;
	}
	if (m->bytes)
		memcpy(item->copy, m->data, m->bytes);
	return item;
}

/* A short message is done at once, since its bytes were copied. Nobody waits for the copy. */
static void post_send(struct relay_peer *peer, struct item *item)
{
	struct embeng_message *m = item->message;
	struct lane *lane = &peer->lanes[m->tag];

	item->number = lane->sent++;
	item->order = peer->posted++;
	if (item->copy) {
		m->moved = m->bytes;
		m->done = 1;
		item->message = NULL;
	}
	append_item(&lane->out, item);
	pthread_cond_signal(&peer->work);
}

static void fill_receive(struct relay *relay, struct lane *lane, struct item *item,
			 struct item *early)
{
	const uint64_t room = item->message->bytes;

	item->moved = early->bytes < room ? early->bytes : room;
	if (item->moved)
		memcpy(item->message->data, early->copy, item->moved);
	item_remove(&lane->early, early);
	item_finish(relay, &lane->in, item, early->bytes > room ? -EMSGSIZE : 0);
	item_free(early);
}

static void post_receive(struct relay *relay, struct relay_peer *peer, struct item *item)
{
	struct lane *lane = &peer->lanes[item->message->tag];

	item->number = lane->posted++;
	append_item(&lane->in, item);
	if (lane->early.first && lane->early.first->number == item->number) {
		fill_receive(relay, lane, item, lane->early.first);
	} else if (peer->lost && !peer->last_came) {
		item_finish(relay, &lane->in, item, -EHOSTDOWN);
	} else if (item->bytes > RELAY_SHORT_BYTES) {
		lane->tell = true;
		pthread_cond_signal(&peer->work);
	}
}

static int post_relayed(void *self, struct embeng_message *messages, size_t count, void **out)
{
	struct relay_op *op = calloc(1, sizeof(*op) + count * sizeof(*op->items));
	struct relay *relay = self;

	for (size_t i = 0; op && i < count; i++) {
		op->items[i] = make_item(&messages[i]);
		op->count += op->items[i] != NULL;
		if (op->items[i])
			continue;
		while (op->count)
			item_free(op->items[--op->count]);
		free(op);
		op = NULL;
	}
	if (!op)
		return -ENOMEM;
	pthread_mutex_lock(&relay->lock);
	for (size_t i = 0; i < count; i++) {
		struct relay_peer *peer = &relay->peers[messages[i].peer];
		struct item *item = op->items[i];

		if (messages[i].receive) {
			post_receive(relay, peer, item);
			continue;
		}
		post_send(peer, item);
		if (!item->message)
			op->items[i] = NULL;
		if (peer->lost) /* nobody waits for a message that is done already */
			item_finish(relay, &peer->lanes[messages[i].tag].out, item, -EHOSTDOWN);
	}
	pthread_mutex_unlock(&relay->lock);
	*out = op;
	return 0;
}

static int test_relayed(void *self, void *tested)
{
	struct relay_op *op = tested;
	struct relay *relay = self;

	pthread_mutex_lock(&relay->lock);
	for (size_t i = 0; i < op->count; i++) {
		const struct item *item = op->items[i];

		if (!item || !item->done)
			continue;
		item->message->moved = item->moved;
		item->message->error = item->error;
		item->message->done = 1;
	}
	pthread_mutex_unlock(&relay->lock);
	return 0;
}

static int drop_relayed(void *self, void *dropped)
{
	struct relay_op *op = dropped;
	struct relay *relay = self;

	pthread_mutex_lock(&relay->lock);
	for (size_t i = 0; i < op->count; i++) {
		struct item *item = op->items[i];
		struct lane *lane;

		if (!item)
			continue;
		lane = &relay->peers[item->message->peer].lanes[item->message->tag];
		if (!item->done)
			item_remove(item->message->receive ? &lane->in : &lane->out, item);
		item_free(item);
	}
	pthread_mutex_unlock(&relay->lock);
	free(op);
	return 0;
}

static void wait_relayed(void *self, uint64_t ns)
{
	struct relay *relay = self;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000u);
	until.tv_nsec = (long)(ns % 1000000000u);
	pthread_mutex_lock(&relay->lock);
	while (!relay->happened &&
	       pthread_cond_timedwait(&relay->event, &relay->lock, &until) != ETIMEDOUT)
		;
	relay->happened = false;
	pthread_mutex_unlock(&relay->lock);
}

static void wake_relayed(void *self)
{
	struct relay *relay = self;

	pthread_mutex_lock(&relay->lock);
	ring_group(relay);
	pthread_mutex_unlock(&relay->lock);
}

static void close_relayed(void *self)
{
	struct relay *relay = self;

	pthread_mutex_lock(&relay->lock);
	relay->closed = true;
	for (uint32_t rank = 0; rank < relay->ranks; rank++)
		pthread_cond_broadcast(&relay->peers[rank].work);
	pthread_mutex_unlock(&relay->lock);
	relay_put(relay);
}

void relay_fill(struct relay *relay, const char *name, struct embeng_transport *out)
{
	*out = EMBENG_INIT(embeng_transport, .self = relay, .rank = relay->rank,
			   .ranks = relay->ranks, .post = post_relayed, .test = test_relayed,
			   .drop = drop_relayed, .wait = wait_relayed, .wake = wake_relayed,
			   .close = close_relayed);
	strncpy(out->name, name, sizeof(out->name) - 1);
	pthread_mutex_lock(&relay->lock);
	relay->references++;
	pthread_mutex_unlock(&relay->lock);
}

/* -- life ------------------------------------------------------------------------------- */

struct relay *relay_new(uint32_t rank, uint32_t ranks)
{
	struct relay *relay = calloc(1, sizeof(*relay) + ranks * sizeof(*relay->peers));
	pthread_condattr_t monotonic;

	if (!relay)
		return NULL;
	relay->rank = rank;
	relay->ranks = ranks;
	relay->references = 1;
	pthread_mutex_init(&relay->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&relay->event, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (uint32_t peer = 0; peer < ranks; peer++) {
		pthread_cond_init(&relay->peers[peer].work, NULL);
		for (uint32_t tag = 0; tag < RELAY_TAGS; tag++) {
			init_queue(&relay->peers[peer].lanes[tag].out);
			init_queue(&relay->peers[peer].lanes[tag].in);
			init_queue(&relay->peers[peer].lanes[tag].early);
		}
	}
	return relay;
}

static void free_queue(struct queue *queue)
{
	while (queue->first) {
		struct item *item = queue->first;

		item_remove(queue, item);
		item_free(item);
	}
}

void relay_put(struct relay *relay)
{
	bool last;

	pthread_mutex_lock(&relay->lock);
	last = !--relay->references;
	pthread_mutex_unlock(&relay->lock);
	if (!last)
		return;
	for (uint32_t peer = 0; peer < relay->ranks; peer++) {
		pthread_cond_destroy(&relay->peers[peer].work);
		for (uint32_t tag = 0; tag < RELAY_TAGS; tag++) {
			free_queue(&relay->peers[peer].lanes[tag].out);
			free_queue(&relay->peers[peer].lanes[tag].early);
		}
	}
	pthread_mutex_destroy(&relay->lock);
	pthread_cond_destroy(&relay->event);
	free(relay);
}

uint32_t relay_rank(const struct relay *relay)
{
	return relay->rank;
}

uint32_t relay_ranks(const struct relay *relay)
{
	return relay->ranks;
}
