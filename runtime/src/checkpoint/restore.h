/* SPDX-License-Identifier: MIT */
/* Parts of a restore: which array of a checkpoint goes into which of the engine. */
#ifndef EMBENG_RESTORE_H
#define EMBENG_RESTORE_H

#include "open.h"
#include "session/session.h"

struct restore;

/**
 * struct array_pair - one table's parameters or one of its slots, in the model and in the checkpoint
 * @table, @array: in the model
 * @from_table, @from_array: in the checkpoint
 * @rows: rows that both have; those of the handle that has the rows
 * @noted: the report has a value of it that is not finite, or shall not have one
 * @found: such a value was found here
 * @to_table: in the handle that has the rows
 * @to_rows: rows that its table has, by their numbers in the table of the model
 * @to_first, @to_columns: columns that it has
 */
struct array_pair {
	int table, array;
	int from_table, from_array;
	uint64_t rows;
	bool noted, found;
	int to_table;
	struct embeng_shard_rows to_rows;
	uint64_t to_first, to_columns;
};

/*
 * struct restore_parts - a restore by all hosts of a group
 * @choose: keeps the pairs that this host has rows of, and says where they go
 * @beat: called now and then until @agree is, so that the other hosts know that this one is at work
 * @agree: told whether this host is ready to replace its rows; returns what all hosts go on with
 */
struct restore_parts {
	int (*choose)(struct restore *r);
	int (*agree)(struct restore *r, int status);
	int (*beat)(struct restore *r);
	void *arg;
};

struct restore {
	struct embeng *e;
	struct embeng *to; /* the handle that has the rows: @e, or this host's of a group */
	const struct restore_parts *parts; /* hosts/restore.c, else NULL */
	char *wide;			   /* whole rows, of which @to has some columns */
	size_t wide_bytes;
	struct embeng_checkpoint *c;
	const char *dir;
	struct embeng_restore_options options;
	struct array_pair *pairs;
	size_t pair_count;
	struct embeng_restore_report report;
	uint64_t after;
	bool replacing; /* all hosts were ready */
	bool staged;	/* else in place */
	bool loading;	/* in place: what fails from here on leaves a mixture */
	uint64_t done, total;
};

/* restore.c: restores from a folder, but for the report of the options. */
int restore_folder(struct restore *r, const struct embeng_restore_options *options);
void restore_give_report(const struct restore *r);

/*
 * restore_pairs.c: lists what is restored, with its bytes as the total. The caller frees @pairs.
 *
 * Return: 0, -ENOENT (table, slot), -EINVAL (shape, names), -ENOMEM.
 */
int restore_pair_all(struct restore *r);

/* restore_notes.c: puts settings that differ into the report; after restore_pair_all(). */
void restore_note_settings(struct restore *r);

/*
 * restore_notes.c: looks at numbers before they are written. @data: rows of the whole table.
 * Those that are not finite, and that the model allows, are noted in the report.
 *
 * Return: 0, -ERANGE naming table, slot and row of one that the model cannot have.
 */
int restore_check_numbers(struct restore *r, struct array_pair *pair,
			  const struct embeng_shard_rows *rows, const float *data);

#endif
