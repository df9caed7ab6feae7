/* SPDX-License-Identifier: MIT */
/*
 * The files of a session share this (session.h has the rules): its state, and one call under way.
 * session.c says what its lock guards. All functions are called with the lock, unless they say otherwise.
 */
#ifndef EMBENG_PYTHON_SESSION_QUEUE_H
#define EMBENG_PYTHON_SESSION_QUEUE_H

#include "session.h"

/* A batch that was enqueued. One that is void is taken back as soon as it is the oldest. */
struct queued {
	bool train, is_void;
};

/* The batches of a replica that were not dequeued, the oldest first, and its steps. */
struct queue {
	struct queued *items;
	size_t count, room;
	uint64_t dropped;		 /* batches that stood before the first of @items */
	uint64_t taken, given;		 /* training batches: dequeued; with gradients */
	struct embeng_batch *batches[2]; /* by enum embeng_mode, kept for the next enqueue */
};

struct session {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t replicas;
	uint64_t late; /* steps by which gradients may be late */
	struct queue *queues;
	size_t feature_count;
	const float **gradients; /* [feature_count], as the next one: of one call */
	size_t *elements;
	bool *modes;
	size_t mode_count, mode_room;
};

/* One call under way, in a use of the engine. */
struct running {
	const struct session_call *call;
	struct open_engine *open;
	struct session *session;
	int64_t end; /* on the monotonic clock */
};

/* Begins a call, and takes the lock. Called without it. */
int running_begin(struct running *run, const struct session_call *call);
/* Gives the lock up, and ends the use of the engine. */
void running_end(struct running *run);
/* Gives the lock up alone. */
void running_unlock(struct running *run);

/* Fills the error of the call. Return: @code. */
#define running_refuse(run, code, ...) open_error_set((run)->call->error, code, __VA_ARGS__)
int running_refuse_memory(const struct running *run);
/* Takes the library's sentence, if @code is an error. Return: @code. */
int running_report(const struct running *run, int code);

/*
 * Sleeps until another call may have changed something, without the lock. Called when the library said
 * that it would wait for one. Return: 0, -ETIME without an error when the time is over, or an error.
 */
int running_await(struct running *run);

int running_find_queue(const struct running *run, uint32_t replica, struct queue **queue);
/* Whether gradients are missing that the oldest batch of a replica, which has one, waits for. */
bool session_lacks_gradients(const struct session *session, const struct queue *queue);

/* Takes the oldest batch of a replica, which has one. Return: -ETIME: not without another call. */
int running_take(struct running *run, uint32_t replica, struct embeng_activations *activations);
/* Likewise, and ends its view if it is one of inference. */
int running_take_back(struct running *run, uint32_t replica);
/* Ends the oldest training batch of a replica that was dequeued, for which no gradients come. */
int running_discard(struct running *run, uint32_t replica);
/* After -ETIME of these and of running_await(). Return: -EPROTO. */
int running_refuse_take(const struct running *run, uint32_t replica);
/* Takes back the oldest batches that are void, as far as earlier steps are complete. */
int running_drop_void(struct running *run);

/* session_enqueue.c: enqueues a batch without samples. @place: out: struct queue.dropped, when it is first. */
int running_push_nothing(struct running *run, uint32_t replica, bool train, uint64_t *place);

#endif
