/* SPDX-License-Identifier: MIT */
/* Tables as they were after one step, read while later steps are applied. */
#ifndef EMBENG_SESSION_SNAPSHOT_H
#define EMBENG_SESSION_SNAPSHOT_H

#include "rows.h"

/*
 * struct snapshot - one snapshot of all tables and slots
 * @e: the session
 * @what: name of the public call, for sentences
 * @number: the device's number of it
 * @updates: the optimizer's step count in it
 * @memory: memory for the rows of one read
 * @bytes: size of the next read
 * @ahead: memory that the device has at hand for old rows
 */
struct snapshot {
	struct embeng *e;
	const char *what;
	uint32_t number;
	uint64_t updates;
	struct region memory;
	uint64_t bytes;
	uint64_t ahead;
};

/*
 * snapshot_begin() - begin a snapshot of the tables as they are after every complete update
 * @s: filled in; snapshot_end() must follow, whatever is returned
 * @body: called once it has begun, before any update follows, with @arg and with @s->memory to use;
 *	its commands must carry @after
 *
 * Updates wait until those before are applied, and no longer. e->saves is held, e->lock is not.
 * Return: 0, -ENOTSUP when the device has no snapshots or no memory for one, or an error as of
 * gate_enter().
 */
int snapshot_begin(struct snapshot *s, struct embeng *e, const char *what, rows_body body,
		   void *arg);

/* Makes room for at least one row, and sets *@most to the rows that the next read takes. */
int snapshot_room(struct snapshot *s, int table, uint64_t stride, uint64_t *most);

/*
 * snapshot_read() - read rows of a table or slot
 * @data: set to the rows, which the next read overwrites
 *
 * Return: 0, -ESTALE when the snapshot ended for want of memory or since another one began, or
 * another error.
 */
int snapshot_read(struct snapshot *s, int table, int slot, const struct embeng_shard_rows *rows,
		  const char **data);

/* The same for rows of any numbers; snapshot_room() was asked for a stride of 2. */
int snapshot_pick(struct snapshot *s, int table, int slot, const uint64_t *rows, uint64_t count,
		  const char **data);

/* Says that the first @tables of the model will not be read any more. */
void snapshot_pass(struct snapshot *s, size_t tables);

void snapshot_end(struct snapshot *s);

#endif
