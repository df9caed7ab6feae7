/* SPDX-License-Identifier: MIT */
/*
 * The inside of a group. Everything below the lock is the group's; the transport and what the
 * comment of a member says are the service thread's alone.
 */
#ifndef EMBENG_GROUP_H
#define EMBENG_GROUP_H

#include <pthread.h>
#include <stdbool.h>

#include "embeng/group.h"
#include "wire.h"

#define GROUP_PIECE_MOST (1ull << 30)
#define FAREWELL_NS 300000000ull /* time that a host which leaves waits for the others' farewells */
#define GROUP_HOST_WORDS 200	 /* bytes of "host 2 (n17)" */

/* Messages in flight, and the memory that they touch, which is freed in one piece. */
struct parcel {
	struct embeng_message *messages;
	size_t count;
	void *op;     /* NULL: not posted */
	uint32_t tag; /* the tag of pieces */
	struct parcel *next;
};

enum flight_state {
	FLIGHT_IDLE,
	FLIGHT_QUEUED, /* embeng_group_begin() was called */
	FLIGHT_RUNS,
	FLIGHT_DONE, /* embeng_group_end() may take it */
};

/*
 * struct flight_peer - one peer's side of an exchange
 * @header: as it came, once @came
 * @body: the bytes that came, in the first message or in @rest
 * @rest: receives the pieces of the body that stand behind the first message
 * @whole: all of the body came
 * @sending: a piece for this peer is not sent
 */
struct flight_peer {
	struct wire_header header;
	unsigned char *body;
	struct parcel *rest;
	bool came, whole, sending;
};

/*
 * struct flight - the exchange of a channel
 * @header: that of this host's messages, but for the peer's own numbers
 * @first: sends first messages to all peers, then receives theirs
 * @pieces: sends what does not fit into first messages; also has this host's bytes for itself
 * @own: those bytes
 * @serial: exchanges that the channel had before
 * @asked: when hosts were last asked whether they are alive
 */
struct flight {
	enum flight_state state;
	struct wire_header header;
	uint64_t began, deadline, serial, asked;
	struct parcel *first, *pieces;
	struct embeng_bytes own;
	struct flight_peer *peers;
	int code;
	char text[EMBENG_ERROR_TEXT];
};

/* The control messages of one peer. */
struct control {
	struct parcel *receive;
	struct wire_state *state; /* its answer in a trial, or NULL */
	uint64_t bye_ns;	  /* when it said that it leaves, or 0 */
	uint64_t heard_ns;	  /* when it last asked, or said that it is alive, or 0 */
	uint32_t damaged;	  /* messages without a sound header, one after another */
	bool gone;		  /* the transport says so */
};

/*
 * struct trial - the hosts that are left agree on a sentence
 * @of: the exchange in which this host found a cause, or NULL
 * @code: 0, or that cause, which @text tells; -ETIME: the deadline of @of passed
 */
struct trial {
	bool on;
	uint64_t began;
	const struct flight *of;
	int code;
	char text[EMBENG_ERROR_TEXT];
};

struct embeng_group {
	struct embeng_transport transport;
	uint64_t deadline_ns, piece_bytes;
	uint32_t rank, ranks, generation;
	char (*names)[EMBENG_HOST_TEXT]; /* constant once the hello is done */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* for programs: an exchange has ended */
	pthread_cond_t work;	/* for the thread, where the transport has no wait() */
	pthread_t service;
	bool stop;
	int dead;  /* 0, or the errno of the first cause */
	bool told; /* a call has returned it */
	int blame; /* 0, or the errno of a failure that group_blame() brings, with its sentence */
	char blame_text[EMBENG_ERROR_TEXT];
	char cause[EMBENG_ERROR_TEXT];
	struct flight flights[EMBENG_GROUP_CHANNELS];

	struct control *controls; /* [ranks] */
	struct trial trial;
	struct parcel *notices; /* control messages that this host sends */
	bool moved;		/* something happened in this turn of the thread */
};

/* parcel.c: NULL with a sentence if there is no memory; @bytes is room behind the messages. */
struct parcel *parcel_new(size_t count, size_t bytes, void **room);
int parcel_post(struct embeng_group *g, struct parcel *p);
/* Looks whether the transport failed with one message. Return: 0, or a negative errno with a sentence. */
int parcel_check(const struct embeng_group *g, const struct embeng_message *m);
/* Moves it on, and may so end messages of other parcels. Return: 0, or a negative errno with a sentence. */
int parcel_test(struct embeng_group *g, struct parcel *p);
bool parcel_done(const struct parcel *p);
/* Ends one that is done, whose memory stays until parcel_drop(), which any thread may call then. */
void parcel_finish(struct embeng_group *g, struct parcel *p);
/* Ends it and frees it, unless the transport may still touch it. */
void parcel_drop(struct embeng_group *g, struct parcel **p);

/* words.c: "host 2 (n17)" */
const char *host_words(const struct embeng_group *g, uint32_t rank, char *to);
/* "hosts 0, 1, 3" of the ranks of @set; with names if there is one alone. */
void hosts_words(const struct embeng_group *g, const uint64_t *set, char *to, size_t size);
static inline bool rank_in(const uint64_t *set, uint32_t rank)
{
	return set[rank / 64] >> rank % 64 & 1;
}
static inline void rank_add(uint64_t *set, uint32_t rank)
{
	set[rank / 64] |= 1ull << rank % 64;
}

/* cargo.c: copies what this host brings to an exchange into parcels. */
int flight_load(struct embeng_group *g, struct flight *f, const struct embeng_exchange *x);
void flight_clear(struct embeng_group *g, struct flight *f);
/* The place of a peer among those that are not this host. */
static inline uint32_t peer_place(const struct embeng_group *g, uint32_t peer)
{
	return peer - (peer > g->rank);
}

/* flight.c: both return a negative errno, with a sentence, for what ends the group. */
int flight_start(struct embeng_group *g, struct flight *f);
int flight_advance(struct embeng_group *g, struct flight *f);
/* Says from which hosts nothing came, and which did not finish. */
void flight_waiting(const struct embeng_group *g, const struct flight *f, uint64_t *silent,
		    uint64_t *stuck);

/* trial.c: @code has the last sentence of this thread, but for -ETIME: the deadline of @of passed. */
int trial_listen(struct embeng_group *g);
void trial_begin(struct embeng_group *g, int code, const struct flight *of);
void trial_advance(struct embeng_group *g);
void trial_say_bye(struct embeng_group *g);
/* Asks hosts for which an exchange waits long, and begins a trial if one does not answer. */
void pulse_advance(struct embeng_group *g);
/* All others have said that they leave. */
bool trial_all_left(const struct embeng_group *g);
void trial_clear(struct embeng_group *g);
/* The group is dead from now on, and whoever waits is woken. */
void group_die(struct embeng_group *g, int code, const char *text);

/*
 * judge.c: the sentence on which hosts agree. @states[rank] is NULL where no answer came.
 * Return: the errno.
 */
int judge_states(const struct embeng_group *g, const struct wire_state *const *states, char *text);

/* service.c */
void *service_run(void *group);

/*
 * group.c, for a handle over all hosts: 0, or how the group has failed; and its end for a failure that the
 * program's side found, which is the thread's last sentence. All hosts agree on one sentence, as for
 * those of an exchange; group_blame() waits for it and returns it.
 */
int group_cause(struct embeng_group *g);
int group_blame(struct embeng_group *g, int code);

#endif
