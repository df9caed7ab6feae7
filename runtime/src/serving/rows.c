// SPDX-License-Identifier: MIT
/*
 * Finds where the rows of a served table lie: in the mapped shards of a checkpoint, or side by side
 * in memory.
 *
 * A row source borrows the memory that it points to. It is only read after it was made.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "serving.h"

/* Counted from there no offset is negative. */
static const float *find_lowest(const struct checkpoint_piece *pieces, size_t count)
{
	const float *base = pieces[0].rows;

	for (size_t i = 1; i < count; i++)
		if (pieces[i].rows < base)
			base = pieces[i].rows;
	return base;
}

/* Rows of every piece but the last, which may have fewer; 0: not the same. */
static int64_t even_count(const struct checkpoint_piece *pieces, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (pieces[i].first != (int64_t)i * pieces[0].count)
			return 0;
	return pieces[count - 1].count <= pieces[0].count ? pieces[0].count : 0;
}

struct row_source source_of(const struct checkpoint_piece *pieces, size_t count, size_t dim)
{
	return (struct row_source){
		.base = find_lowest(pieces, count),
		.dim = dim,
		.pieces = pieces,
		.piece_count = count,
		.piece_rows = even_count(pieces, count),
	};
}

static size_t count_deltas(const struct row_source *source)
{
	return source->deltas ? checkpoint_delta_count(source->deltas, source->table) : 0;
}

int source_open(const struct embeng_checkpoint *checkpoint, int table, size_t dim,
		struct row_source *source)
{
	const struct checkpoint_piece *pieces;
	int count = checkpoint_pieces(checkpoint, table, 0, &pieces);

	if (count < 0)
		return count;
	*source = source_of(pieces, (size_t)count, dim);
	source->checkpoint = checkpoint;
	source->table = table;
	if (checkpoint_delta_count(checkpoint, table))
		source->deltas = checkpoint;
	for (size_t i = 0; i < count_deltas(source); i++) {
		const struct checkpoint_piece *piece = checkpoint_delta_piece(checkpoint, table, 0,
									      i);

		if (piece->rows < source->base)
			source->base = piece->rows;
	}
	return 0;
}

uint64_t source_place(const struct row_source *source, int64_t row)
{
	size_t low = 0, high = source->id_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (source->ids[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int source_check(const struct row_source *source, int64_t row)
{
	int64_t place;
	const struct checkpoint_piece *piece = source_find(source, row, &place);
	uint64_t bytes = source->dim * sizeof(float);

	return checkpoint_check(source->checkpoint, piece, (uint64_t)place * bytes, bytes);
}

/* Linux 5.14; systems that do not know it map pages when they are used. */
static void populate_pages(const void *from, uint64_t bytes)
{
#ifdef MADV_POPULATE_READ
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)from & ~(page - 1);

	madvise((void *)start, (uintptr_t)from + bytes - start, MADV_POPULATE_READ);
#else
	(void)from;
	(void)bytes;
#endif
}

static void populate_piece(const struct row_source *source, const struct checkpoint_piece *piece)
{
	populate_pages(piece->rows, (uint64_t)piece->count * source->dim * sizeof(float));
}

void source_trust(struct row_source *source)
{
	source->checkpoint = NULL;
	for (size_t i = 0; i < source->piece_count; i++)
		populate_piece(source, &source->pieces[i]);
	for (size_t i = 0; i < count_deltas(source); i++)
		populate_piece(source, checkpoint_delta_piece(source->deltas, source->table, 0, i));
}

static int check_piece(const struct row_source *source, const struct checkpoint_piece *piece)
{
	return checkpoint_check(source->checkpoint, piece, 0,
				(uint64_t)piece->count * source->dim * sizeof(float));
}

int source_check_all(struct row_source *source)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < source->piece_count; i++)
		ret = check_piece(source, &source->pieces[i]);
	for (size_t i = 0; !ret && i < count_deltas(source); i++)
		ret = check_piece(source,
				  checkpoint_delta_piece(source->deltas, source->table, 0, i));
	if (!ret)
		source->checkpoint = NULL;
	return ret;
}
