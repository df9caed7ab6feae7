/* SPDX-License-Identifier: MIT */
/*
 * The old contents of the rows of a table that changed since a snapshot began, so that the snapshot
 * can be read while steps go on.
 *
 * A row is copied before its first change, with its slots, into blocks of memory that grow with the
 * number of changed rows. Only running commands call these functions, without engine->lock. The
 * cores of one command may keep rows at the same time, as long as no two keep the same row.
 */
#ifndef EMBENG_ENGINE_KEPT_ROWS_H
#define EMBENG_ENGINE_KEPT_ROWS_H

#include "../types.h"

struct kernel_group;
struct model;
struct table;

/**
 * struct kept_rows - a table's part of a snapshot
 * @places: [rows of the table] 0: the row is as it was, else 1 + its place among the kept ones;
 *	NULL: the table is in no snapshot
 * @blocks: [@block_count] memory of @block_rows rows each, with their slots
 * @room: entries that @blocks has room for
 * @used: rows that are kept; the cores add to it atomically
 */
struct kept_rows {
	u32 *places;
	u8 **blocks;
	u64 block_count, room, block_rows;
	u64 used;
};

/* Puts a table into a snapshot. Return: 0, or -1 without memory. */
int kept_begin(struct model *model, struct table *table);
/* Takes a table out of its snapshot, if it is in one, and frees what was kept. */
void kept_end(struct model *model, struct table *table);
/* Likewise all tables: the model has no snapshot any more. */
void kept_end_all(struct model *model);
/* Frees without giving the bytes back to the account, for a model that gives back all of them. */
void kept_free(struct table *table);

/*
 * kept_reserve() - make room for up to @rows that are about to change
 *
 * Where there is no memory the snapshot ends, and what changes the rows goes on.
 */
void kept_reserve(struct model *model, struct table *table, u64 rows);

/* Keeps rows that are about to change. There must be room. */
void kept_add_groups(struct table *table, const struct kernel_group *groups, u64 count);
void kept_add_range(struct table *table, u64 first, u64 count);

/* Where the contents of a row or of its slot are, as of the snapshot that the table is in. */
const u8 *kept_find(struct table *table, u64 row, u32 slot);

#endif
