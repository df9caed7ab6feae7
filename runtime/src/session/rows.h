/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ROWS_H
#define EMBENG_ROWS_H

#include "checkpoint/shard.h"
#include "session.h"

/* Runs without e->lock, as the only user of e->staging. Its commands must carry @after. */
typedef int (*rows_body)(struct embeng *e, void *arg, uint64_t after);

/* A slot's number, 0 for parameters; or an errno for a table or slot that there is not. */
int rows_find_slot(struct embeng *e, const char *what, int table, const char *slot);

/* Runs @body while the gate keeps updates back, so that all its commands see one state. */
int rows_behind_gate(struct embeng *e, const char *what, rows_body body, void *arg);

/*
 * steps.c: the next lookup sees all updates that were handed in, also with pipelining, as it does after rows were
 * written, which are on another host of a group.
 */
int steps_see_updates(struct embeng *e);

/*
 * Rows first, first + stride, ... of a table or slot, or those of @ids if they are given, for one command
 * of such a body.
 */
struct rows_chunk {
	const char *what;
	enum embeng_opcode op;
	uint16_t flags;
	int table, slot;
	uint64_t after, first, stride, count;
	const uint64_t *ids;
	uint64_t arg; /* the snapshot, of SNAPSHOT_READ */
};

/* Makes room for at least one row, and sets *@most to the rows that fit: with @ids at a stride of 2. */
int rows_chunk_room(struct embeng *e, int table, uint64_t stride, uint64_t *most);
/* The memory that the rows of a chunk are written to or read from. */
char *rows_chunk_data(const struct embeng *e);
int rows_chunk_run(struct embeng *e, const struct rows_chunk *chunk);

/*
 * The same with memory of the caller in place of the session's, so that they need no e->rows.
 * @bytes: memory to use, or more where a row needs more
 */
int rows_chunk_room_in(struct embeng *e, struct region *memory, uint64_t bytes, int table,
		       uint64_t stride, uint64_t *most);
char *rows_chunk_data_in(const struct region *memory);
int rows_chunk_run_in(struct embeng *e, const struct region *memory,
		      const struct rows_chunk *chunk);

/**
 * struct rows_asked - a call on rows of a handle over the hosts of a group, where other hosts make it, too
 * @ids: [@count], or NULL for the rows from @first on
 * @data: read from or written to; NULL for a fill, which has an @initializer
 * @status: 0, or why the arguments are refused, with the thread's last sentence: all hosts learn it
 */
struct rows_asked {
	const char *what;
	enum embeng_opcode op; /* ROWS_READ, ROWS_WRITE or ROWS_FILL */
	int table, slot;
	const int64_t *ids;
	uint64_t first, count;
	float *data;
	const struct embeng_initializer *initializer;
	int status;
};

/* Rows to be read from a table's parameters. */
struct rows_reading {
	int table;
	const int64_t *ids;
	size_t count; /* 0: no rows */
	float *data;
};

/*
 * Reads all @readings as the tables are at one moment. @status: as of &struct rows_asked: over a group all hosts
 * make the call, with readings of their own.
 */
int rows_read_together(struct embeng *e, const char *what, const struct rows_reading *readings,
		       size_t count, int status);

/* Reads or, if @write, writes existing rows of a table or slot, all at one moment. */
int rows_move(struct embeng *e, const char *what, bool write, int table, const char *slot,
	      const struct embeng_shard_rows *rows, float *data);

#endif
