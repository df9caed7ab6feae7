/* SPDX-License-Identifier: MIT */
/* An open checkpoint as its readers see it. */
#ifndef EMBENG_CHECKPOINT_OPEN_H
#define EMBENG_CHECKPOINT_OPEN_H

#include <stdatomic.h>

#include "checkpoint.h"
#include "index.h"

/* Files of a table: index.files[first] .. index.files[first + count - 1]. */
struct table_files {
	size_t first, count;
	struct checkpoint_piece *pieces; /* [1 + slots][count] */
};

struct embeng_checkpoint {
	char *folder;
	struct index index;
	const char **maps; /* [file_count], NULL: not mapped yet */
	struct table_files *tables;
	struct checkpoint_piece *pieces;
	_Atomic unsigned char *good; /* [chunk_count] checked and right */
};

/* Chunk @chunk of file @file, unless it was checked before. */
int check_chunk(const struct embeng_checkpoint *c, size_t file, uint64_t chunk);
/* Bytes of a mapped file, in @to. */
int copy_bytes(const struct embeng_checkpoint *c, size_t file, uint64_t offset, uint64_t bytes,
	       void *to);

/*
 * checkpoint_gather() - rows of a table or slot that has them, at any stride
 * @slot: 0 parameters, 1 + k slot k
 * @to: [rows->count][dim]
 *
 * Checks the chunks that it reads. Return: 0, -EBADMSG, -EIO.
 */
int checkpoint_gather(const struct embeng_checkpoint *c, int table, int slot,
		      const struct embeng_shard_rows *rows, void *to);

#endif
