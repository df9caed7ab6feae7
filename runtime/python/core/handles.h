/* SPDX-License-Identifier: MIT */
/*
 * Open engines as numbers, for code that runs without an interpreter: handlers of XLA, kernels of
 * TensorFlow. A number is Engine.handle; it is never given twice in a process.
 *
 * Nothing here needs Python or its lock, and any thread may call.
 */
#ifndef EMBENG_PYTHON_HANDLES_H
#define EMBENG_PYTHON_HANDLES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "embeng.h"

struct open_group;
struct raw_call;
struct pending;
struct session;

/* Locks for updates: a replica has the one that its number leaves as a rest. */
#define OPEN_TURNS 64

/* The part of an engine that needs no Python object, and may outlive it. */
struct open_engine {
	int64_t number;
	struct embeng *handle;	  /* usable between enter and leave */
	struct open_group *group; /* that it is over, of which it is a use; NULL: none */
	atomic_size_t references;
	pthread_mutex_t updates[OPEN_TURNS]; /* held while embeng_update() runs for a replica */
	pthread_mutex_t lock;		     /* the members below; held for moments */
	size_t users;			     /* calls under way */
	size_t maps;
	bool closed;		 /* no call begins any more */
	bool changing;		 /* tables are being added: no other call may begin */
	bool is_shut;		 /* the handle was closed */
	struct raw_call *calls;	 /* kept for the next ones */
	struct pending *pending; /* gradients that wait for an update */
	size_t pending_count;
	struct session *session; /* the order of its steps, once a program asks for one */
};

enum open_entry { OPEN_ENTERED, OPEN_CLOSED, OPEN_CHANGING };

/* Takes the handle. The caller has a reference. Return: NULL without memory. */
struct open_engine *open_engine_new(struct embeng *handle);
/* Gives a reference back. The last one frees it; the handle must have been shut. */
void open_engine_put(struct open_engine *open);

/*
 * Begins a use of the handle, which stays open until open_engine_leave(). That tells whether it was the
 * last use of an engine that is closed: then the caller calls open_engine_shut().
 */
enum open_entry open_engine_enter(struct open_engine *open);
bool open_engine_leave(struct open_engine *open);
/* Likewise of a map, which is begun within a use. */
void open_engine_keep(struct open_engine *open);
bool open_engine_let_go(struct open_engine *open);
/* Lets no further use begin, and ends the waits of those under way. Return: as open_engine_leave(). */
bool open_engine_close(struct open_engine *open);
/* embeng_update() when it is the replica's turn, since it is for one thread per replica at a time. */
int open_update(struct open_engine *open, struct embeng_batch *batch,
		const struct embeng_gradients *gradients, int64_t timeout_ns);

/* Closes the handle, which waits for updates that were handed in. */
void open_engine_shut(struct open_engine *open);

/* Lets this use alone add tables. Return: false, if there is another use. */
bool open_engine_begin_change(struct open_engine *open);
void open_engine_end_change(struct open_engine *open);

/*
 * open_engine_find() - begin a use of the engine of a number
 *
 * Return: the engine, to be given to open_engine_done(); NULL with @error filled: -ENODEV (none has
 * the number any more), -EBUSY.
 */
struct open_engine *open_engine_find(int64_t number, struct embeng_error *error);
void open_engine_done(struct open_engine *open);

/* Fills @error. Return: @code. */
int open_error_set(struct embeng_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Long work of this thread that calls functions of the program, which may not use the engine. */
struct open_work {
	const struct open_engine *open;
	struct open_work *outer;
};

void open_work_begin(struct open_work *work, const struct open_engine *open);
void open_work_end(const struct open_work *work);
bool open_work_is_on(const struct open_engine *open);
#define OPEN_WORK_TEXT \
	"this call comes from a function that another call of the same engine runs, of progress " \
	"or of a signal; make it when that has returned"

#endif
