/* SPDX-License-Identifier: MIT */
/* One embeng_rows_read() or embeng_rows_write() of all hosts, while rows move in rounds. */
#ifndef EMBENG_HOSTS_MOVING_H
#define EMBENG_HOSTS_MOVING_H

#include "collective.h"
#include "segment.h"

/* A host's request, before the first round. */
struct wish {
	uint64_t count;
	uint32_t table, slot, listed, unused;
};

/**
 * struct moving - a call while rows move
 * @wishes: [hosts]
 * @before: [hosts + 1] how many rows the hosts before one ask for
 * @most: rows of a round
 * @at: the first row of the round, in the list of all
 * @width: floats of a row of the whole table
 * @numbers: [@most] row numbers, for the owner
 * @spread: the rows of the table are spread over the hosts; only then are there the members below
 * @wanted: [@most] rows of the whole table that this host asks for in the round
 * @counts: [hosts] how many of these a host has
 * @placed: [hosts] how many of these have been put into a message, or taken from one
 */
struct moving {
	struct embeng *e;
	struct hosts *h;
	const struct rows_asked *asked;
	const char *phase;
	struct wish *wishes;
	uint64_t *before;
	uint64_t most, at, width;
	int64_t *numbers;
	bool spread;
	int64_t *wanted;
	uint64_t *counts, *placed;
};

/* Rows of a host that are in the round: @first of its own, and how many. */
struct window {
	uint64_t first, count;
};

static inline struct window window_of(const struct moving *m, uint32_t host)
{
	const uint64_t end = m->at + m->most;
	uint64_t from = m->before[host], to = m->before[host + 1];

	from = from < m->at ? m->at : from;
	to = to > end ? end : to;
	return (struct window){from - m->before[host], to > from ? to - from : 0};
}

/*
 * rows_spread.c, for tables whose rows are spread. A message has the number of its rows, 64 bits, then the
 * numbers of these rows at their host, and then the rows if they are written. Memory; it is made before the
 * first round.
 */
int spread_make(struct moving *m);
void spread_free(struct moving *m);
/* Messages for the hosts of the rows that this host asks for in the round, with the rows if @write. */
int spread_pack_rows(struct moving *m, bool write);
/* At the host of rows: how many a message is about. Return: 0, -EBADMSG. */
int spread_take_count(const struct moving *m, uint32_t host, struct reading *message,
		      uint64_t *count);
/* Puts the rows that came into the program's memory, in the order in which they were asked for. */
int spread_place_rows(const struct moving *m);

#endif
