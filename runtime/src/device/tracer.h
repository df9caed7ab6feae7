/* SPDX-License-Identifier: MIT */
/* A record of the commands of a handle, for `embeng trace show`. */
#ifndef EMBENG_TRACER_H
#define EMBENG_TRACER_H

#include <stdint.h>

#include "wire.h"

struct tracer;

/* A queue, as the record names it. */
struct tracer_queue {
	uint32_t number, kind; /* kind: enum embeng_queue_kind */
};

/**
 * tracer_open() - begin a record, if the environment variable EMBENG_TRACE names a file for it
 * @device: the name of the device, for people who read the file
 * @out: set to the record, or to NULL if there is to be none
 *
 * Return: 0, or a negative errno with a sentence if the file cannot be written or is no trace.
 */
int tracer_open(const char *device, struct tracer **out);

/*
 * Ends a record, after it was added to its file. NULL is ignored. The record of a handle that is
 * still open when the program exits is written then.
 * Return: 0, or a negative errno.
 */
int tracer_close(struct tracer *tracer);

/* A command was put into a queue at @at, a time of now_ns(); @index counts the queue's commands. */
void tracer_note_command(struct tracer *tracer, const struct tracer_queue *queue, uint32_t index,
			 const struct embeng_cmd *cmd, uint64_t at);

/* The program sees a completion now. */
void tracer_note_completion(struct tracer *tracer, const struct tracer_queue *queue,
			    const struct embeng_cqe *cqe);

#endif
