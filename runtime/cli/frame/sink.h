/* SPDX-License-Identifier: MIT */
/*
 * Streams that know why they failed. A stream of stdio forgets: what a full buffer could not
 * write is gone, with it the errno, and the next flush succeeds.
 */
#ifndef CLI_SINK_H
#define CLI_SINK_H

#include <stdio.h>

/**
 * struct sink - where a stream writes to; stays in place while the stream is open
 * @fd: closed with the stream
 * @err: negative errno of the first write that failed, or 0
 */
struct sink {
	int fd, err;
};

/* A stream that writes to @s->fd, or NULL: then the descriptor is still the caller's. */
FILE *sink_open(struct sink *s);

/* Writes out what @stream, which is the sink's, has. 0, or the errno of what was ever lost. */
int sink_flush(const struct sink *s, FILE *stream);

/* Makes stdout such a stream; where that is not possible, it stays what it was. */
void sink_take_stdout(void);

/* sink_flush() of stdout, whichever it is. */
int sink_flush_stdout(void);

#endif
