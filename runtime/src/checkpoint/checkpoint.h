/* SPDX-License-Identifier: MIT */
/* The parts of an open checkpoint that serving needs beyond the public calls. */
#ifndef EMBENG_CHECKPOINT_H
#define EMBENG_CHECKPOINT_H

#include <stdatomic.h>

#include "embeng/checkpoint.h"

/*
 * struct checkpoint_piece - rows of a table or slot that lie in one shard
 * @first: first row
 * @count: rows
 * @stride: distance from a row of the piece to the next, at least 1; equal for all pieces
 * @rows: [count][dim] memory-mapped, aligned to at least 4 bytes
 * @file: index of the shard
 * @offset: byte offset of @rows in the shard
 * @good: a note for each chunk of the shard: 1 once it was found right; set while others read
 */
struct checkpoint_piece {
	int64_t first, count, stride;
	const float *rows;
	size_t file;
	uint64_t offset;
	const _Atomic unsigned char *good;
};

/*
 * checkpoint_pieces() - find the rows of a table or slot in the shards
 * @slot: 0 for the parameters, 1 + k for slot k of the saved optimizer
 * @pieces: set to the pieces, host by host, each host's in row order without gaps; they belong to
 *	the checkpoint until it is closed
 *
 * Opens the shards that they are in. Return: the number of pieces, -ENOENT, or as
 * embeng_checkpoint_open(), -ESTALE where a save removed a shard before it was used.
 */
int checkpoint_pieces(const struct embeng_checkpoint *checkpoint, int table, int slot,
		      const struct checkpoint_piece **pieces);

/*
 * checkpoint_read_mapped() - have checks read the maps, as the caller reads rows
 *
 * Copies by the system find a file that was cut, and take longer than the check of a chunk. Where rows are
 * read from the maps they would find nothing more than that. To be called before the checkpoint is shared.
 */
void checkpoint_read_mapped(struct embeng_checkpoint *checkpoint);

/* The index of @row among the rows of a piece, which must hold it. */
static inline int64_t checkpoint_place(const struct checkpoint_piece *piece, int64_t row)
{
	return piece->stride == 1 ? row - piece->first : (row - piece->first) / piece->stride;
}

/* The piece that holds @row. @count is at least 1, and one of the pieces must hold it. */
const struct checkpoint_piece *checkpoint_piece_of(const struct checkpoint_piece *pieces,
						   size_t count, int64_t row);

/*
 * checkpoint_check() - check the chunks that bytes of a piece are in, each only once
 *
 * It is thread-safe, allocates nothing and takes no lock. A chunk that was checked before
 * costs one atomic load. Return: 0, or -EBADMSG naming file and offset.
 */
int checkpoint_check(const struct embeng_checkpoint *checkpoint,
		     const struct checkpoint_piece *piece, uint64_t offset, uint64_t bytes);

/* A chunk has 2 to the power of so many bytes. */
uint32_t checkpoint_chunk_shift(const struct embeng_checkpoint *checkpoint);

/*
 * checkpoint_find_delta() - find the newest row of a number in the deltas of a checkpoint
 * @place: set to the index of the row in the piece
 *
 * Return: the piece, or NULL when no delta has the row, so that it is in one of checkpoint_pieces().
 */
const struct checkpoint_piece *checkpoint_find_delta(const struct embeng_checkpoint *checkpoint,
						     int table, int slot, int64_t row,
						     int64_t *place);
/* Number of deltas that have rows of a table, and the rows that one of them has. */
size_t checkpoint_delta_count(const struct embeng_checkpoint *checkpoint, int table);
const struct checkpoint_piece *checkpoint_delta_piece(const struct embeng_checkpoint *checkpoint,
						      int table, int slot, size_t delta);

#endif
