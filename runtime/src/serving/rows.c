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

int source_open(const struct embeng_checkpoint *checkpoint, int table, size_t dim,
		struct row_source *source)
{
	const struct checkpoint_piece *pieces;
	int count = checkpoint_pieces(checkpoint, table, 0, &pieces);

	if (count < 0)
		return count;
	*source = source_of(pieces, (size_t)count, dim);
	source->checkpoint = checkpoint;
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
	const struct checkpoint_piece *piece = source_piece(source, row);
	uint64_t bytes = source->dim * sizeof(float);

	return checkpoint_check(source->checkpoint, piece,
				(uint64_t)checkpoint_place(piece, row) * bytes, bytes);
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

void source_trust(struct row_source *source)
{
	source->checkpoint = NULL;
	for (size_t i = 0; i < source->piece_count; i++)
		populate_pages(source->pieces[i].rows,
			       (uint64_t)source->pieces[i].count * source->dim * sizeof(float));
}

int source_check_all(struct row_source *source)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < source->piece_count; i++)
		ret = checkpoint_check(source->checkpoint, &source->pieces[i], 0,
				       (uint64_t)source->pieces[i].count * source->dim *
					       sizeof(float));
	if (!ret)
		source->checkpoint = NULL;
	return ret;
}
