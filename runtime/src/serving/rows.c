// SPDX-License-Identifier: MIT
/*
 * Finds where the rows of a served table lie: in the mapped shards of a checkpoint, or side by side
 * in memory.
 *
 * A row source borrows the memory that it points to, but a copy, which is its own until
 * source_close(). It is only read after it was made.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/open.h"
#include "serving.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* glibc 2.37 */
#endif

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

/* The loop of source_all_good(), without branches. */
static inline bool are_good(const struct row_source *source, const void *ids, size_t count,
			    const bool narrow, const bool one)
{
	const uint32_t shift = checkpoint_chunk_shift(source->checkpoint);
	const uint64_t bytes = source->dim * sizeof(float);
	unsigned int good = 1;

	for (size_t k = 0; k < count; k++) {
		uint64_t row = narrow ? ((const uint32_t *)ids)[k] : ((const uint64_t *)ids)[k];
		const struct checkpoint_piece *piece = source_even_piece(source, row, one);
		uint64_t at = piece->offset + (row - (uint64_t)piece->first) * bytes;

		good &= atomic_load_explicit(&piece->good[at >> shift], memory_order_relaxed);
		good &= atomic_load_explicit(&piece->good[(at + bytes - 1) >> shift],
					     memory_order_relaxed);
	}
	return good;
}

bool source_all_good(const struct row_source *source, int type, const void *ids, size_t count)
{
	const bool one = source->piece_count == 1;

	if (!source_is_even(source) ||
	    source->dim * sizeof(float) > 1ull << checkpoint_chunk_shift(source->checkpoint))
		return false;
	if (type == EMBENG_I32)
		return one ? are_good(source, ids, count, true, true)
			   : are_good(source, ids, count, true, false);
	return one ? are_good(source, ids, count, false, true)
		   : are_good(source, ids, count, false, false);
}

int source_check(const struct row_source *source, int64_t row)
{
	int64_t place;
	const struct checkpoint_piece *piece = source_find(source, row, &place);
	uint64_t bytes = source->dim * sizeof(float);

	return checkpoint_check(source->checkpoint, piece, (uint64_t)place * bytes, bytes);
}

/*
 * Asks for the rows in huge pages, as an engine's are, and has the system gather those that are in
 * memory already: a random row of a page of 4 KiB takes half as long again, because its address is
 * translated anew. Only a wish, which files in memory (tmpfs) are granted since Linux 6.1. The last
 * part of a file keeps its small pages.
 */
static void gather_huge_pages(const struct checkpoint_piece *piece, uint64_t bytes)
{
	uintptr_t rows = (uintptr_t)piece->rows, map = rows - piece->offset;
	uintptr_t end = (rows + bytes) & ~(FILE_HUGE_PAGE - 1);
	uintptr_t start = rows & ~(FILE_HUGE_PAGE - 1);

	if (start < map || start >= end)
		return;
	madvise((void *)start, end - start, MADV_HUGEPAGE);
	madvise((void *)start, end - start, MADV_COLLAPSE);
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
	uint64_t bytes = (uint64_t)piece->count * source->dim * sizeof(float);

	gather_huge_pages(piece, bytes);
	populate_pages(piece->rows, bytes);
}

static void populate_all(const struct row_source *source)
{
	for (size_t i = 0; i < source->piece_count; i++)
		populate_piece(source, &source->pieces[i]);
	for (size_t i = 0; i < count_deltas(source); i++)
		populate_piece(source, checkpoint_delta_piece(source->deltas, source->table, 0, i));
}

void source_trust(struct row_source *source)
{
	source->checkpoint = NULL;
	populate_all(source);
}

static int check_piece(const struct row_source *source, const struct checkpoint_piece *piece)
{
	return checkpoint_check(source->checkpoint, piece, 0,
				(uint64_t)piece->count * source->dim * sizeof(float));
}

int source_check_all(struct row_source *source)
{
	int ret = 0;

	populate_all(source);
	for (size_t i = 0; !ret && i < source->piece_count; i++)
		ret = check_piece(source, &source->pieces[i]);
	for (size_t i = 0; !ret && i < count_deltas(source); i++)
		ret = check_piece(source,
				  checkpoint_delta_piece(source->deltas, source->table, 0, i));
	if (!ret)
		source->checkpoint = NULL;
	return ret;
}

/* Whole huge pages, so that the last rows are in one, too. */
static int allocate_copy(struct row_source *source, const struct table *t)
{
	uint64_t rows = (uint64_t)t->rows * source->dim * sizeof(float);
	uint64_t bytes = (rows + FILE_HUGE_PAGE - 1) & ~(uint64_t)(FILE_HUGE_PAGE - 1);
	void *p = bytes > SIZE_MAX ? MAP_FAILED
				   : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return fail(-ENOMEM,
			    "table %s: no memory for a copy of its %" PRId64 " x %" PRId64
			    " parameters; serve from the files, without COPY",
			    t->name, t->rows, t->dim);
	madvise(p, bytes, MADV_HUGEPAGE);
	source->copy = p;
	source->copy_bytes = bytes;
	return 0;
}

int source_copy(struct row_source *source, const struct table *t)
{
	const struct embeng_shard_rows all = {.stride = 1, .count = t->rows};
	int ret = allocate_copy(source, t);

	if (!ret)
		ret = checkpoint_gather(source->checkpoint, source->table, 0, &all, source->copy);
	if (ret)
		return ret;
	source->base = source->copy;
	source->pieces = NULL;
	source->deltas = NULL;
	source->checkpoint = NULL;
	return 0;
}

void source_close(struct row_source *source)
{
	if (source->copy)
		munmap(source->copy, source->copy_bytes);
}
