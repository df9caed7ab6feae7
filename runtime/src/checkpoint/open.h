/* SPDX-License-Identifier: MIT */
/* The structure of an open checkpoint, for the code that reads from it. */
#ifndef EMBENG_CHECKPOINT_OPEN_H
#define EMBENG_CHECKPOINT_OPEN_H

#include <pthread.h>
#include <stdatomic.h>

#include "checkpoint.h"
#include "index.h"

/* Files of a table: index.files[first] .. index.files[first + count - 1]. */
struct table_files {
	size_t first, count;
	struct checkpoint_piece *pieces; /* [1 + slots][count] */
	struct delta_rows *deltas;	 /* [delta_count] the oldest first */
	size_t delta_count;
	_Atomic bool placed; /* its pieces know where their rows are */
};

/* A table's rows in one delta. */
struct delta_rows {
	size_t count;
	int64_t *numbers;			    /* [count] rising */
	struct checkpoint_piece pieces[ARRAYS_MAX]; /* row k is that of number k */
};

/*
 * struct checkpoint_shard - a shard, from its first use on
 * @map: its bytes; NULL until then
 * @good: [shard_notes()] 1: it was checked and is right; the shard's chunks, the chunks of its chunk
 *	table's first part, and the second part
 */
struct checkpoint_shard {
	_Atomic(const char *) map;
	_Atomic unsigned char *good;
};

/* @lock: held while a shard is opened, and while pieces are told where their rows are */
struct checkpoint_shards {
	pthread_mutex_t lock;
	struct checkpoint_shard of[]; /* [file_count]; only homes are used */
};

struct spool;

struct embeng_checkpoint {
	char *folder;
	struct spool
		*spool; /* where the shards of a stream are; NULL: they are files of the folder */
	bool mapped;	/* checks read where the files are mapped, see checkpoint_read_mapped() */
	bool opened;	/* a shard that is gone from now on was removed */
	struct index index;
	struct checkpoint_shards *shards;
	struct table_files *tables;
	struct checkpoint_piece *pieces;
	struct delta_rows *deltas; /* [file_count - base_count] table by table */
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

/*
 * shards.c: opens the shards of c->index, or some of them when they are used. shard_use() returns 0
 * once that of @home is open, -ESTALE where a save removed it, and as embeng_checkpoint_open().
 */
int shards_open(struct embeng_checkpoint *c);
void shards_close(struct embeng_checkpoint *c);
size_t shards_count(const struct embeng_checkpoint *c);
int shard_use(const struct embeng_checkpoint *c, size_t home);

/* The bytes of a shard that is open, or NULL. */
static inline const char *shard_map(const struct embeng_checkpoint *c, size_t home)
{
	return atomic_load_explicit(&c->shards->of[home].map, memory_order_acquire);
}

/* Sets where the rows and the notes of a piece are, whose shard is open. */
static inline void piece_place(const struct embeng_checkpoint *c, struct checkpoint_piece *piece)
{
	piece->rows = (const float *)(const void *)(shard_map(c, piece->file) + piece->offset);
	piece->good = c->shards->of[piece->file].good;
}

/* read.c: as checkpoint_pieces(), but @rows and @good of the pieces may be unknown. */
int checkpoint_find_pieces(const struct embeng_checkpoint *c, int table, int slot,
			   const struct checkpoint_piece **pieces);

/* Checks chunk @chunk of file @file, unless it was checked before. */
int check_chunk(const struct embeng_checkpoint *c, size_t file, uint64_t chunk);
/* read.c: copies bytes of a shard, which is opened for it, to @to. */
int copy_bytes(const struct embeng_checkpoint *c, size_t file, uint64_t offset, uint64_t bytes,
	       void *to);
/* copy.c: the same of a shard's @map. The other writes the sentence of what is wrong at @offset, and returns @code. */
int shard_copy(const struct embeng_checkpoint *c, size_t home, const char *map, uint64_t offset,
	       uint64_t bytes, void *to);
int shard_error(const struct embeng_checkpoint *c, size_t home, int code, uint64_t offset,
		const char *what);

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
