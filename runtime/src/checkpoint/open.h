/* SPDX-License-Identifier: MIT */
/* The structure of an open checkpoint, for the code that reads from it. */
#ifndef EMBENG_CHECKPOINT_OPEN_H
#define EMBENG_CHECKPOINT_OPEN_H

#include <stdatomic.h>

#include "checkpoint.h"
#include "index.h"

/* Files of a table: index.files[first] .. index.files[first + count - 1]. */
struct table_files {
	size_t first, count;
	struct checkpoint_piece *pieces; /* [1 + slots][count] */
	struct delta_rows *deltas;	 /* [delta_count] the oldest first */
	size_t delta_count;
};

/* A table's rows in one delta. */
struct delta_rows {
	size_t count;
	int64_t *numbers;			    /* [count] rising */
	struct checkpoint_piece pieces[ARRAYS_MAX]; /* row k is that of number k */
};

struct spool;

struct embeng_checkpoint {
	char *folder;
	struct spool
		*spool; /* where the shards of a stream are; NULL: they are files of the folder */
	bool mapped;	/* checks read where the files are mapped, see checkpoint_read_mapped() */
	struct index index;
	const char **maps; /* [file_count]; NULL while a file is not mapped */
	struct table_files *tables;
	struct checkpoint_piece *pieces;
	struct delta_rows *deltas; /* [file_count - base_count] table by table */
	/*
	 * [note_count] 1: it was checked and is right; for each shard its chunks, the chunks of its chunk
	 * table's first part, and the second part.
	 */
	_Atomic unsigned char *good;
};

/* checkpoint.c: opens the checkpoint of the index @name in @dir, which no save may change. */
int checkpoint_open_index(const char *dir, const char *name, struct embeng_checkpoint **out);
/* Opens the checkpoint whose index has @text and whose shards are in @spool, which it takes, even if it fails. */
int checkpoint_open_spool(struct spool *spool, const char *text, size_t length,
			  struct embeng_checkpoint **out);
/* checkpoint_earlier.c: opens the newest checkpoint of @step. */
int checkpoint_open_step(const char *dir, uint64_t step, struct embeng_checkpoint **out);

/* checkpoint_delta.c: reads and checks the row numbers of all deltas. */
int checkpoint_open_deltas(struct embeng_checkpoint *c);
void checkpoint_close_deltas(struct embeng_checkpoint *c);
/* Replaces rows in @to by those of deltas; else as checkpoint_gather(), which calls it. */
int checkpoint_gather_deltas(const struct embeng_checkpoint *c, int table, int slot,
			     const struct embeng_shard_rows *rows, char *to);

/* read.c: checks all chunks from those of entry @file on, as embeng_checkpoint_verify() does. */
int checkpoint_verify_from(const struct embeng_checkpoint *c, size_t file,
			   embeng_progress_fn progress, void *arg);
/* read.c: checks all chunks of the shard of @home that were not checked before, and its chunk table. */
int checkpoint_verify_shard(const struct embeng_checkpoint *c, size_t home);

/* Checks chunk @chunk of file @file, unless it was checked before. */
int check_chunk(const struct embeng_checkpoint *c, size_t file, uint64_t chunk);
/* Copies bytes of a mapped file to @to. */
int copy_bytes(const struct embeng_checkpoint *c, size_t file, uint64_t offset, uint64_t bytes,
	       void *to);

/*
 * checkpoint_gather() - copy rows of a table or slot, at any stride; they must exist
 * @slot: 0 for the parameters, 1 + k for slot k
 * @to: [rows->count][dim] filled with the rows
 *
 * The chunks that are read are checked. Return: 0, -EBADMSG, -EIO.
 */
int checkpoint_gather(const struct embeng_checkpoint *c, int table, int slot,
		      const struct embeng_shard_rows *rows, void *to);

#endif
