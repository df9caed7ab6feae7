/* SPDX-License-Identifier: MIT */
/*
 * A handle over all hosts of a group. Each host runs the same program, which opens the same model.
 *
 * Two handles
 * -----------
 * The group's handle is the &struct embeng that the program has: its model is the whole one, all tables and
 * all replicas. It has no device. Inside is the owner handle, @owner, an ordinary handle on this host's
 * device with the model of this host's part: the tables, or columns or rows of tables, that the placement gives to
 * this host, the features of those, and all replicas. Public functions find @calls in the group's handle
 * and go there (struct calls, session/session.h).
 *
 * Numbers
 * -------
 * A table is whole on one host, cut by columns, or spread by rows: enum place_kind. A table has one kind. Rows of the
 * first two have the same number everywhere. A (global table, column c) is on the host of that part of
 * place.parts[place.first[table]...] with first_column <= c < first_column + columns; there it is column
 * c - first_column. Row r of a table that is spread is whole on one host, where it has another number:
 * hosts_locate(). @tables gives the number that the table has in the owner handle of this host, or -1. So to read
 * rows of a table here:
 *
 *	const struct place_part *part = hosts_part(h, table, h->rank);
 *
 *	if (part)
 *		embeng_rows_read(h->owner, h->tables[table], slot, ids, count, data);
 *
 * where data is [count][part->columns]. A slot has the width of its part too; a table with a slot of one
 * number a row is never cut. The owner handle has one table more, at the end, if nothing of its part can train.
 *
 * Steps
 * -----
 * A step passes three threads of this folder, each with a channel of the group:
 *	ids (0)		all replicas of this host have enqueued: ids go to the owners, who enqueue them
 *	answers (1)	owners dequeue, and pooled vectors go back
 *	gradients (2)	all replicas of this host gave gradients: they go to the owners, who apply them
 * @looked, @answered and @updated are the last steps that passed each. A thread waits for nothing that the
 * program of another host has yet to do, but in its exchange. A host without replicas only serves: its
 * threads begin an exchange at once, and wait in it for as long as the others are alive.
 *
 * All else that touches tables is collective: all hosts make the same call in the same order.
 * The calling thread exchanges on channel 3, by hosts_control().
 *
 * Locks
 * -----
 * e->lock of the group's handle guards all members that are not constant. It is never held in a call
 * of the owner handle or of the group. h->turn is taken before it: one collective call at a time. @changed is
 * signalled after every change that anybody may wait for.
 *
 * Failure
 * -------
 * The first failure ends all: hosts_fail(). Calls in flight return it, or else the next call does, and
 * those after it return -ESHUTDOWN. A batch that one host refuses is no failure: no host takes that step.
 */
#ifndef EMBENG_HOSTS_H
#define EMBENG_HOSTS_H

#include <pthread.h>

#include "embeng/group.h"
#include "embeng/spread.h"
#include "place.h"
#include "session/session.h"
#include "session/wait.h"

enum { CHANNEL_IDS, CHANNEL_ANSWERS, CHANNEL_GRADIENTS, CHANNEL_CONTROL };

/* Threads of a handle, by the channel that they use. */
#define HOSTS_THREADS 3

/*
 * Time that a lookup of the owner handle may take. It is an end, and so far away: a wait without one would end if its
 * thread had a view whose gradients are missing, but another thread brings those.
 */
#define HOSTS_LOOKUP_TIMEOUT (INT64_MAX / 4)

/* Time of an exchange that a host without replicas begins before the others. */
#define HOSTS_NO_LIMIT (UINT64_MAX / 4)

/**
 * struct hosts_memory - memory that grows
 * @data: [@bytes]
 * @shared: it is a buffer of the owner handle
 */
struct hosts_memory {
	char *data;
	size_t bytes;
	bool shared;
};

/**
 * struct list_counts - counts of a table that is spread, of this host's replicas
 * @ids, @dropped, @clamped, @zeroed: as those of &struct embeng_table_stats
 * @nonfinite: activations that are not finite
 */
struct list_counts {
	uint64_t ids, dropped, clamped, zeroed, nonfinite;
};

/**
 * struct cargo - the part of a slot that only a group's handle needs
 * @ids: parcels of its ids, one for each host, which are @ids_for
 * @gradients: likewise of its gradients
 * @at: where the next of it goes while it is packed
 * @bags: [features]: whether its batch has bags, and not one row in each sample
 * @feeder: the thread that enqueued it
 * @inside: that thread is still in its call, and learns the outcome there
 * @outcome: 1: the step was taken; a negative errno: it was refused
 * @answered: the activations are there
 * @discarded: no gradients come
 * @lists: [row lists]: the rows that its batch reads
 * @readers: [row features]: its inputs, where @copies has their offsets, weights and places
 * @counts: [row lists][hosts]: rows of each host, where @lists points to
 * @asked: [row lists]: what statistics count of the batch, and @counted: they have
 * @occurrences: places of ids in lists that send gradients (samples.h); NULL: there are no such lists
 * @rows: the rows of the lists; @sums: their sums of gradients; @seen: whether a row has one yet
 */
struct cargo {
	struct hosts_memory ids, gradients;
	struct embeng_bytes *ids_for, *gradients_for; /* [hosts] */
	char **at;				      /* [hosts] */
	bool *bags;
	pthread_t feeder;
	bool inside, answered, discarded, counted;
	int outcome;
	struct embeng_spread_table *lists;
	struct embeng_spread_feature *readers;
	size_t *counts;
	struct list_counts *asked;
	struct hosts_memory copies, rows, sums, seen;
	struct occurrences *occurrences;
};

/**
 * struct row_list - a table that is spread by rows, and looked up
 * @table: index in the model
 * @served: feature of the owner handle that gathers the rows of this host, or -1: it has none
 * @width: bytes of a row's place in messages
 * @trains: an optimizer changes the table
 * @repeats: it takes each gradient by itself, so that its host is asked for a row as often as it occurs
 */
struct row_list {
	int table, served;
	uint32_t width;
	bool trains, repeats;
};

/**
 * struct host_choice - the reason why a table has its exchange
 * @named: an option of the device asks for it
 * @refused: but the table does not allow it
 * @planned: the bytes of the exchanges were compared
 * @bytes: bytes on a link with the cheapest exchange, and @next with the next one; 0: there is no other
 */
struct host_choice {
	bool named, refused, planned;
	uint64_t bytes, next;
};

/**
 * struct notice - a replica whose batches were withdrawn, and whose thread was not told yet
 * @feeder: the thread that enqueued the last batch, once @fed
 * @resumes: a batch whose embeng_enqueue() was interrupted while other hosts were waited for, or NULL: the
 *	same call goes on. It is in @slot, if that still has @order
 */
struct notice {
	bool pending, fed;
	pthread_t feeder;
	const struct embeng_batch *resumes;
	struct slot *slot;
	uint64_t order;
};

struct joined;

struct hosts {
	struct embeng *e;
	struct embeng *owner;
	struct embeng_group *group;
	uint32_t rank, hosts;
	struct place_wish wish;
	struct placement place;
	struct host_choice *choices; /* [tables]: why each has its exchange */
	int *tables;		     /* [tables]: number in the owner handle, or -1 */
	int *features;		     /* [features]: likewise; -1 also for those of row lists */
	/* [list_count]: those that send sums come first, then those that send gradients, then those without */
	struct row_list *lists;
	size_t list_count;
	int *readers; /* [reader_count]: features that read lists, in the order of lists */
	size_t reader_count, summed_lists, summed_readers, trained_lists, trained_readers;
	size_t served;			    /* features of the owner handle that others ask for */
	struct embeng_batch **batches;	    /* [replicas]: of the owner handle, the ids thread's */
	bool **ids_only;		    /* [depth][replicas]: no activations are wanted */
	uint64_t **firsts;		    /* [depth][replicas * lists]: rows that go back */
	struct slot **slots[HOSTS_THREADS]; /* [local replicas]: each a thread's */
	struct embeng_activations *views;   /* [replicas]: the answers thread's */
	struct hosts_memory memory[HOSTS_THREADS]; /* each a thread's */
	pthread_mutex_t list_lock;		   /* guards the two below; after e->lock */
	struct list_stats *list_stats;		   /* [list_count], list_stats.h */
	struct hosts_memory groups;
	struct joined *joined;	     /* joined.h, or NULL: each replica has queues of the device */
	struct hosts_memory summing; /* the gradients thread's: sums of gradients that came */
	struct embeng_bytes *send[HOSTS_THREADS + 1], *received[HOSTS_THREADS + 1]; /* [hosts] */
	struct cargo *cargo;	/* [local replicas][slots] */
	struct notice *notices; /* [local replicas] */

	pthread_cond_t changed;
	pthread_t threads[HOSTS_THREADS];
	uint32_t running; /* threads that were started */
	uint32_t working; /* threads that do not wait for the program */
	bool stop;
	bool ending;		   /* all hosts have closed the handle: empty exchanges say so */
	bool ended[HOSTS_THREADS]; /* such an exchange has passed the stage */
	uint64_t looked, answered, updated;

	const struct slot *refused; /* a batch that this host refuses, or NULL */
	int refusal;		    /* why, and later why the last step was refused */
	char refusal_text[EMBENG_ERROR_TEXT];
	int failed;
	bool told;
	char failed_text[EMBENG_ERROR_TEXT];

	pthread_mutex_t turn; /* one collective call at a time, which has what follows */
	struct cargo asking_cargo;
	int looking; /* the exchange of a lookup that was left under way: enum looking */
	int (*settle)(struct hosts *h, struct deadline deadline); /* ends it, once @looking */
	int looking_status;					  /* that this host brought to it */
	struct hosts_memory looked_for; /* [looked_bytes]: its ids, to know the call that goes on */
	uint64_t looked_bytes;
	struct hosts_memory answer;
	struct embeng_batch *asked;    /* an inference batch of the owner handle */
	struct embeng_output *outputs; /* [features of the owner handle] */
	uint64_t call_step;	       /* its step, while it is under way */
	int event;		       /* eventfd of embeng_fd(), or -1 */
};

/* Exchanges of a lookup whose wait may end before they do. */
enum looking { LOOKING_NOT, LOOKING_IDS, LOOKING_ANSWERS };

/* -- for calls on rows, statistics, steps and checkpoints -- */

/* progress.c: the host that feeds a replica, and the first one of a host, or of the next that has one. */
uint32_t hosts_home(const struct hosts *h, uint32_t replica);
uint32_t hosts_first_replica(const struct hosts *h, uint32_t host);
/* The part of a table that a host has, or NULL. */
const struct place_part *hosts_part(const struct hosts *h, int table, uint32_t host);
/*
 * The host of a row of a table that is not cut by columns, and the row's number in that host's owner handle.
 * Return: 0, -ERANGE.
 */
int hosts_locate(const struct hosts *h, int table, int64_t row, uint32_t *host, int64_t *local);
/* Whether the rows of a table are spread over the hosts. */
static inline bool hosts_is_spread(const struct hosts *h, int table)
{
	return h->place.parts[h->place.first[table]].kind == PLACE_ROWS;
}

/**
 * hosts_enter() - begin a collective call
 *
 * All hosts must make it. On return the owner handle has every batch that was enqueued before and every
 * complete step that was handed in, on this host, so that its calls see what a single handle would.
 * Return: 0, then hosts_leave() must follow; or why the handle or the group has failed.
 */
int hosts_enter(struct embeng *e);
/* The same for a lookup, which goes on with one that is under way, and waits no longer than @deadline. */
int hosts_enter_lookup(struct embeng *e, struct deadline deadline);
void hosts_leave(struct embeng *e);

/**
 * hosts_control() - one exchange of a collective call, between hosts_enter() and hosts_leave()
 * @phase: name of the call, for sentences: "rows read"
 * @status: 0, or a negative errno, which embeng_last_error() tells: this host cannot take part. All hosts then
 *	return it, with the sentence "host 3 (n17) says: ...", and @send is not read
 * @send: [hosts]: bytes for each host; NULL: none
 * @received: NULL, or out: [hosts]: bytes of each host, valid until the next hosts_control()
 *
 * Return: 0, a host's status, or how the group failed, after which the handle has failed too.
 */
int hosts_control(struct embeng *e, const char *phase, int status, const struct embeng_bytes *send,
		  struct embeng_bytes *received);

/*
 * An exchange as of hosts_control() in parts. hosts_control_wait() returns -ETIME or -EINTR if @deadline passed or
 * the program wants to end the call: the exchange goes on, and is to be waited for again.
 */
int hosts_control_begin(struct embeng *e, const char *phase, int status,
			const struct embeng_bytes *send);
int hosts_control_wait(struct embeng *e, struct deadline deadline);
int hosts_control_end(struct embeng *e, struct embeng_bytes *received);

/* -- inside -- */

/*
 * progress.c, e->lock held: the last step that all replicas of this host have enqueued; the slot of a local
 * replica, counted from 0, that has a step, or NULL; whether a stage, which is a channel, can take the next
 * step, and whether any can.
 */
uint64_t steps_enqueued(const struct hosts *h);
struct slot *steps_slot(const struct hosts *h, uint32_t local, uint64_t step);
bool stage_can_move(const struct hosts *h, uint32_t stage);
bool steps_can_move(const struct hosts *h);
/* While the handle ends on all hosts: no stage has an exchange left to make. */
bool steps_are_over(const struct hosts *h);

/* control.c: keeps a failure for all calls; e->lock is not held. The sentence is the thread's last one. */
void hosts_fail(struct hosts *h, int code);
/* The same for a failure that the group does not know yet: all hosts agree on a sentence first. */
void hosts_blame(struct hosts *h, int code);
/* 0, or the failure; e->lock is held. */
int hosts_check(struct hosts *h);
/* As wait_until(), for a change by other threads. */
int hosts_wait(struct hosts *h, bool (*ready)(struct embeng *e, void *arg), void *arg,
	       struct deadline deadline);
/* Whether its deadline passed, which has no sentence yet; a group's failure may be -ETIME, too. */
static inline bool hosts_is_late(const struct hosts *h, int ret)
{
	return wait_is_over(ret) && !h->failed;
}
/* One exchange of a step. A failure is kept. */
int hosts_exchange(struct hosts *h, struct embeng_exchange *x, struct embeng_bytes *received);
/* This host has no replica. */
static inline bool hosts_serves_only(const struct hosts *h)
{
	return !h->e->local_replicas;
}
static inline struct embeng_exchange hosts_step_exchange(const struct hosts *h, const char *phase,
							 uint64_t step, uint32_t channel)
{
	return (struct embeng_exchange){
		.size = sizeof(struct embeng_exchange),
		.phase = phase,
		.step = step,
		.model = h->e->model_hash,
		.replicas = h->e->replica_count,
		.channel = channel,
	};
}

#endif
