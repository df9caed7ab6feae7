/* SPDX-License-Identifier: MIT */
#ifndef EMBENG_ROWS_H
#define EMBENG_ROWS_H

#include "checkpoint/shard.h"
#include "session.h"

/* Runs without e->lock, alone with e->staging; its commands carry @after. */
typedef int (*rows_body)(struct embeng *e, void *arg, uint64_t after);

/* @body behind the gate: all its commands see one state of the tables. */
int rows_behind_gate(struct embeng *e, const char *what, rows_body body, void *arg);

/* Rows first, first + stride, ... of a table or slot, for a command of such a body. */
struct rows_chunk {
	const char *what;
	enum embeng_opcode op;
	uint16_t flags;
	int table, slot;
	uint64_t after, first, stride, count;
};

/* Makes room for one row at least. Return: 0, and how many fit in *@most. */
int rows_chunk_room(struct embeng *e, int table, uint64_t stride, uint64_t *most);
/* Where the rows of a chunk are written to, or read from. */
char *rows_chunk_data(const struct embeng *e);
int rows_chunk_run(struct embeng *e, const struct rows_chunk *chunk);

/* Rows of a table's parameters. */
struct rows_reading {
	int table;
	const int64_t *ids;
	size_t count; /* 0: none */
	float *data;
};

/* Reads all of them as the tables are at one moment. */
int rows_read_together(struct embeng *e, const char *what, const struct rows_reading *readings,
		       size_t count);

/* Rows of a table or slot that has them, as they are at one moment; written: @data is read. */
int rows_move(struct embeng *e, const char *what, bool write, int table, const char *slot,
	      const struct embeng_shard_rows *rows, float *data);

#endif
