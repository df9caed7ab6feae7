/* SPDX-License-Identifier: MIT */
/*
 * Streams that remember why they failed. A stream of stdio forgets: when a buffer cannot be
 * written, its contents and the errno are gone, and the next flush succeeds.
 */
#ifndef CLI_SINK_H
#define CLI_SINK_H

#include <stdio.h>

/**
 * struct sink - the target of a stream; must not move while the stream is open
 * @fd: descriptor, closed with the stream
 * @err: negative errno of the first write that failed, or 0
 */
struct sink {
	int fd, err;
};

/* Opens a stream that writes to @s->fd. On failure, NULL, the caller keeps the descriptor. */
FILE *sink_open(struct sink *s);

/* Flushes the sink's @stream. Return: 0, or the errno of the first write that ever failed. */
int sink_flush(const struct sink *s, FILE *stream);

/* Makes stdout such a stream; if that is not possible, it stays as it was. */
void sink_take_stdout(void);

/* sink_flush() for stdout, whether it is such a stream or not. */
int sink_flush_stdout(void);

#endif
