// SPDX-License-Identifier: MIT
/*
 * A transport between threads of one process: each rank has an inbox in memory. Programs try with
 * it what they do on many hosts, and tests make messages fail by their number.
 *
 * One lock holds for all ranks, since messages are few. A message of up to SHORT_BYTES is copied
 * when it is sent; a longer one stays with its sender until its receiver has copied it. The last
 * rank that closes frees everything.
 */
#include "threads.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"

#define SHORT_BYTES 65536u
#define DELAYED_LOOK_NS 1000000u

/* A message on its way. @data is in @copy, or is the sender's until @taken. */
struct letter {
	struct letter *next;
	const void *data;
	void *copy;
	uint64_t bytes, visible_ns;
	uint32_t from, to, tag;
	bool taken, sender_waits;
};

struct thread_op {
	struct embeng_message *messages;
	size_t count;
	struct thread_op *next;	  /* in the order in which they were posted */
	struct letter *letters[]; /* one for each send that is not done */
};

struct thread_port {
	struct thread_hub *hub;
	uint32_t rank;
	pthread_cond_t event;
	bool happened, stopped, dead;
	struct letter *inbox, *held;
	struct thread_op *ops;
	uint64_t sent;
};

struct thread_hub {
	pthread_mutex_t lock;
	uint32_t ranks, open;
	struct thread_fault *faults;
	size_t fault_count;
	struct thread_port ports[];
};

static void ring_port(struct thread_port *port)
{
	port->happened = true;
	pthread_cond_signal(&port->event);
}

static void append_letter(struct letter **list, struct letter *letter)
{
	while (*list)
		list = &(*list)->next;
	letter->next = NULL;
	*list = letter;
}

static void remove_letter(struct letter **list, const struct letter *letter)
{
	while (*list && *list != letter)
		list = &(*list)->next;
	if (*list)
		*list = letter->next;
}

static void free_letter(struct letter *letter)
{
	free(letter->copy);
	free(letter);
}

static const struct thread_fault *find_fault(const struct thread_port *port)
{
	for (size_t i = 0; i < port->hub->fault_count; i++) {
		const struct thread_fault *fault = &port->hub->faults[i];

		if (fault->rank == port->rank && fault->message == port->sent)
			return fault;
	}
	return NULL;
}

static struct letter *write_letter(const struct thread_port *port, const struct embeng_message *m,
				   bool copy)
{
	struct letter *letter = calloc(1, sizeof(*letter));

	if (!letter)
		return NULL;
	*letter = (struct letter){.data = m->data,
				  .bytes = m->bytes,
				  .from = port->rank,
				  .to = m->peer,
				  .tag = m->tag};
	if (!copy)
		return letter;
	letter->copy = malloc(m->bytes ? m->bytes : 1);
	letter->data = letter->copy;
	if (letter->copy && m->bytes)
		memcpy(letter->copy, m->data, m->bytes);
	if (letter->copy)
		return letter;
	free(letter);
	return NULL;
}

static void stop_port(struct thread_port *port, bool dead)
{
	port->stopped = true;
	port->dead = dead;
	for (uint32_t rank = 0; rank < port->hub->ranks; rank++)
		ring_port(&port->hub->ports[rank]);
}

/* Spoils a letter that has a copy. False if it does not go out now. */
static bool spoil_letter(struct thread_port *port, const struct thread_fault *fault,
			 struct letter *letter)
{
	unsigned char *bytes = letter->copy;

	switch (fault->kind) {
	case THREAD_DELAY:
		letter->visible_ns = now_ns() + fault->ns;
		return true;
	case THREAD_TRUNCATE:
		letter->bytes /= 2;
		return true;
	case THREAD_CORRUPT_HEAD:
		bytes[9] ^= 0x40;
		return true;
	case THREAD_CORRUPT_TAIL:
		bytes[letter->bytes - 1] ^= 0x40;
		return true;
	case THREAD_REORDER:
		append_letter(&port->held, letter);
		return false;
	case THREAD_STOP:
	case THREAD_DIE:
		stop_port(port, fault->kind == THREAD_DIE);
		break;
	default: /* THREAD_DROP; THREAD_DUPLICATE is send_letter()'s */
		break;
	}
	free_letter(letter);
	return false;
}

static void deliver_letter(struct thread_port *port, struct letter *letter)
{
	struct thread_port *to = &port->hub->ports[letter->to];

	append_letter(&to->inbox, letter);
	for (struct letter *held = port->held, *next; held; held = next) {
		next = held->next;
		if (held->to != letter->to)
			continue;
		remove_letter(&port->held, held);
		append_letter(&to->inbox, held);
	}
	ring_port(to);
}

static void send_letter(struct thread_port *port, struct embeng_message *m, struct letter **waits)
{
	const struct thread_fault *fault = find_fault(port);
	const bool twice = fault && fault->kind == THREAD_DUPLICATE;
	const bool copy = fault || m->bytes <= SHORT_BYTES;
	struct letter *letter = write_letter(port, m, copy);
	struct letter *second = twice && letter ? write_letter(port, m, true) : NULL;

	if (!letter) {
		m->error = -ENOMEM;
		m->done = 1;
		return;
	}
	port->sent++;
	if (copy) {
		m->moved = m->bytes;
		m->done = 1;
	} else {
		letter->sender_waits = true;
		*waits = letter;
	}
	if (!fault || twice || spoil_letter(port, fault, letter))
		deliver_letter(port, letter);
	if (second)
		deliver_letter(port, second);
}

static int post_messages(void *self, struct embeng_message *messages, size_t count, void **out)
{
	struct thread_port *port = self;
	struct thread_op *op = calloc(1, sizeof(*op) + count * sizeof(*op->letters)), **at;

	if (!op)
		return -ENOMEM;
	op->messages = messages;
	op->count = count;
	pthread_mutex_lock(&port->hub->lock);
	for (at = &port->ops; *at; at = &(*at)->next)
		;
	*at = op;
	for (size_t i = 0; i < count && !port->stopped; i++) {
		if (!messages[i].receive)
			send_letter(port, &messages[i], &op->letters[i]);
	}
	ring_port(port);
	pthread_mutex_unlock(&port->hub->lock);
	*out = op;
	return 0;
}

static void receive_letter(struct thread_port *port, struct embeng_message *m)
{
	struct thread_port *from = &port->hub->ports[m->peer];
	struct letter *letter = port->inbox;

	while (letter && (letter->from != m->peer || letter->tag != m->tag))
		letter = letter->next;
	if (!letter && from->dead) {
		m->error = -EHOSTDOWN;
		m->done = 1;
	}
	if (!letter || letter->visible_ns > now_ns())
		return;
	m->error = letter->bytes > m->bytes ? -EMSGSIZE : 0;
	m->moved = letter->bytes < m->bytes ? letter->bytes : m->bytes;
	if (m->moved)
		memcpy(m->data, letter->data, m->moved);
	m->done = 1;
	remove_letter(&port->inbox, letter);
	letter->taken = true;
	if (letter->sender_waits)
		ring_port(from);
	else
		free_letter(letter);
}

static void finish_send(struct thread_port *port, struct embeng_message *m, struct letter **waits)
{
	struct letter *letter = *waits;

	if (port->hub->ports[m->peer].dead)
		m->error = -EHOSTDOWN;
	else if (letter && letter->taken)
		m->moved = m->bytes;
	else
		return;
	m->done = 1;
	if (!letter)
		return;
	remove_letter(&port->hub->ports[m->peer].inbox, letter);
	free_letter(letter);
	*waits = NULL;
}

/* All operations are looked at, since receives take messages in the order in which they were posted. */
static int test_messages(void *self, void *op)
{
	struct thread_port *port = self;
	int ret = 0;

	(void)op;
	pthread_mutex_lock(&port->hub->lock);
	if (port->dead)
		ret = -EHOSTDOWN;
	for (struct thread_op *o = port->ops; o && !port->stopped; o = o->next) {
		for (size_t i = 0; i < o->count; i++) {
			struct embeng_message *m = &o->messages[i];

			if (!m->done && m->receive)
				receive_letter(port, m);
			else if (!m->done)
				finish_send(port, m, &o->letters[i]);
		}
	}
	pthread_mutex_unlock(&port->hub->lock);
	return ret;
}

static int drop_messages(void *self, void *dropped)
{
	struct thread_port *port = self;
	struct thread_op *op = dropped, **at = &port->ops;

	pthread_mutex_lock(&port->hub->lock);
	while (*at != op)
		at = &(*at)->next;
	*at = op->next;
	for (size_t i = 0; i < op->count; i++) {
		if (!op->letters[i])
			continue;
		remove_letter(&port->hub->ports[op->messages[i].peer].inbox, op->letters[i]);
		free_letter(op->letters[i]);
	}
	pthread_mutex_unlock(&port->hub->lock);
	free(op);
	return 0;
}

static void wait_port(void *self, uint64_t ns)
{
	struct thread_port *port = self;
	struct timespec until;
	uint64_t at;

	pthread_mutex_lock(&port->hub->lock);
	for (const struct letter *letter = port->inbox; letter; letter = letter->next) {
		if (letter->visible_ns && ns > DELAYED_LOOK_NS)
			ns = DELAYED_LOOK_NS;
	}
	at = now_ns() + ns;
	until = (struct timespec){(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
	while (!port->happened &&
	       pthread_cond_timedwait(&port->event, &port->hub->lock, &until) != ETIMEDOUT)
		;
	port->happened = false;
	pthread_mutex_unlock(&port->hub->lock);
}

static void wake_port(void *self)
{
	struct thread_port *port = self;

	pthread_mutex_lock(&port->hub->lock);
	ring_port(port);
	pthread_mutex_unlock(&port->hub->lock);
}

static void free_hub(struct thread_hub *hub)
{
	for (uint32_t rank = 0; rank < hub->ranks; rank++) {
		struct thread_port *port = &hub->ports[rank];

		for (struct letter *next; port->inbox; port->inbox = next) {
			next = port->inbox->next;
			free_letter(port->inbox);
		}
		for (struct letter *next; port->held; port->held = next) {
			next = port->held->next;
			free_letter(port->held);
		}
		pthread_cond_destroy(&port->event);
	}
	pthread_mutex_destroy(&hub->lock);
	free(hub->faults);
	free(hub);
}

static void close_port(void *self)
{
	struct thread_hub *hub = ((struct thread_port *)self)->hub;
	bool last;

	pthread_mutex_lock(&hub->lock);
	last = !--hub->open;
	pthread_mutex_unlock(&hub->lock);
	if (last)
		free_hub(hub);
}

static void init_port(struct thread_hub *hub, uint32_t rank, struct embeng_transport *out)
{
	struct thread_port *port = &hub->ports[rank];
	pthread_condattr_t monotonic;

	port->hub = hub;
	port->rank = rank;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&port->event, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = EMBENG_INIT(embeng_transport, .self = port, .rank = rank, .ranks = hub->ranks,
			   .post = post_messages, .test = test_messages, .drop = drop_messages,
			   .wait = wait_port, .wake = wake_port, .close = close_port);
	snprintf(out->name, sizeof(out->name), "thread%" PRIu32, rank);
}

int threads_make(uint32_t ranks, const struct thread_fault *faults, size_t fault_count,
		 struct embeng_transport *out)
{
	struct thread_hub *hub;

	if (!ranks || ranks > EMBENG_GROUP_RANKS_MOST)
		return fail(-ERANGE, "embeng_group_threads: %" PRIu32 " ranks must be 1 to %d",
			    ranks, EMBENG_GROUP_RANKS_MOST);
	hub = calloc(1, sizeof(*hub) + ranks * sizeof(*hub->ports));
	if (hub)
		hub->faults = calloc(fault_count + 1, sizeof(*faults));
	if (!hub || !hub->faults) {
		free(hub);
		return fail(-ENOMEM,
			    "embeng_group_threads: there is no memory for %" PRIu32 " ranks",
			    ranks);
	}
	hub->ranks = hub->open = ranks;
	hub->fault_count = fault_count;
	if (fault_count)
		memcpy(hub->faults, faults, fault_count * sizeof(*faults));
	pthread_mutex_init(&hub->lock, NULL);
	for (uint32_t rank = 0; rank < ranks; rank++)
		init_port(hub, rank, &out[rank]);
	return 0;
}

int embeng_group_threads(uint32_t ranks, struct embeng_transport *out)
{
	if (!out)
		return fail(-EINVAL, "embeng_group_threads: out is NULL");
	return threads_make(ranks, NULL, 0, out);
}
