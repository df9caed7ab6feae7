/* SPDX-License-Identifier: MIT */
/* A stream in memory, which takes and gives bytes in pieces of chance and fails when it is told to. */
#ifndef EMBENG_TESTS_MEMORY_STREAM_H
#define EMBENG_TESTS_MEMORY_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "embeng.h"

/*
 * @at: where the next read begins
 * @most: most bytes of one call, of which it takes or gives a number of chance; 0: all that are asked for
 * @random: state of chance, not 0
 * @fail_at: number of the call that fails with @code, from 1; 0: none
 */
struct memory_stream {
	char *data;
	size_t bytes, room, at, most;
	uint64_t random;
	unsigned int calls, fail_at;
	int code;
};

static inline size_t memory_stream_piece(struct memory_stream *m, size_t bytes)
{
	size_t piece;

	if (!m->most)
		return bytes;
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	piece = 1 + (size_t)(m->random % m->most);
	return piece < bytes ? piece : bytes;
}

static int64_t memory_stream_write(void *arg, const void *data, size_t bytes)
{
	struct memory_stream *m = arg;

	if (++m->calls == m->fail_at)
		return m->code;
	bytes = memory_stream_piece(m, bytes);
	if (m->room - m->bytes < bytes) {
		m->room = 2 * (m->bytes + bytes);
		m->data = realloc(m->data, m->room);
		if (!m->data)
			abort();
	}
	memcpy(m->data + m->bytes, data, bytes);
	m->bytes += bytes;
	return (int64_t)bytes;
}

static int64_t memory_stream_read(void *arg, void *data, size_t bytes)
{
	struct memory_stream *m = arg;
	size_t left = m->bytes - m->at;

	if (++m->calls == m->fail_at)
		return m->code;
	bytes = memory_stream_piece(m, bytes);
	bytes = bytes < left ? bytes : left;
	if (bytes)
		memcpy(data, m->data + m->at, bytes);
	m->at += bytes;
	return (int64_t)bytes;
}

static inline struct embeng_writer memory_writer(struct memory_stream *m)
{
	m->calls = 0;
	return (struct embeng_writer){
		.size = sizeof(struct embeng_writer), .write = memory_stream_write, .arg = m};
}

/* Reads from the start. */
static inline struct embeng_reader memory_reader(struct memory_stream *m)
{
	m->calls = 0;
	m->at = 0;
	return (struct embeng_reader){
		.size = sizeof(struct embeng_reader), .read = memory_stream_read, .arg = m};
}

static inline void memory_stream_free(struct memory_stream *m)
{
	free(m->data);
	*m = (struct memory_stream){0};
}

#endif
