/* SPDX-License-Identifier: MIT */
/* Inside an open checkpoint: what serving needs of it beyond the public calls. */
#ifndef EMBENG_CHECKPOINT_H
#define EMBENG_CHECKPOINT_H

#include "embeng/checkpoint.h"

/*
 * struct checkpoint_piece - rows of a table or slot that lie in one shard
 * @first: first row
 * @count: rows
 * @stride: from a row to the next of the piece, from 1; the same in a whole checkpoint
 * @rows: [count][dim], memory-mapped, 4-byte aligned at least
 * @file: index of the shard
 * @offset: of @rows in the shard, in bytes
 */
struct checkpoint_piece {
	int64_t first, count, stride;
	const float *rows;
	size_t file;
	uint64_t offset;
};

/*
 * checkpoint_pieces() - where the rows of a table or slot lie
 * @slot: 0 parameters, 1 + k slot k of the saved optimizer
 * @pieces: out, host by host and there in row order without gaps; the checkpoint's,
 *	until it is closed
 *
 * Return: how many, or -ENOENT.
 */
int checkpoint_pieces(const struct embeng_checkpoint *checkpoint, int table, int slot,
		      const struct checkpoint_piece **pieces);

/* The place of @row, which it holds, among the rows of a piece. */
static inline int64_t checkpoint_place(const struct checkpoint_piece *piece, int64_t row)
{
	return piece->stride == 1 ? row - piece->first : (row - piece->first) / piece->stride;
}

/* The one of @count pieces, at least one, that holds @row. */
const struct checkpoint_piece *checkpoint_piece_of(const struct checkpoint_piece *pieces,
						   size_t count, int64_t row);

/*
 * checkpoint_check() - check the chunks behind bytes of a piece, each once
 *
 * Thread-safe: allocates nothing and takes no lock; a chunk that was checked before
 * costs one atomic load. Return: 0, or -EBADMSG naming file and offset.
 */
int checkpoint_check(const struct embeng_checkpoint *checkpoint,
		     const struct checkpoint_piece *piece, uint64_t offset, uint64_t bytes);

#endif
