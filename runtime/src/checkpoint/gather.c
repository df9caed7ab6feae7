// SPDX-License-Identifier: MIT
/*
 * Reads rows of a checkpoint that are a given distance apart, from files whose rows are another
 * distance apart. So a checkpoint of any number of hosts is read as one table, or as the part of
 * any host.
 *
 * The data go into memory of the caller. The checkpoint is only read; any number of threads may
 * call.
 */
#include <inttypes.h>
#include <string.h>

#include "base/divisor.h"
#include "base/error.h"
#include "model/model.h"
#include "open.h"

#define COPY_BYTES 16384u /* on the stack of whoever reads */

/*
 * Rows of one shard lie side by side. Every @skip-th row of the request lies in the same shard,
 * @step places on.
 */
struct gather {
	const struct embeng_checkpoint *c;
	const struct checkpoint_piece *pieces;
	size_t piece_count;
	uint64_t row_bytes, step, skip;
};

/* Rows side by side: @count of them from @place on. */
static int read_places(const struct gather *g, const struct checkpoint_piece *piece, uint64_t place,
		       uint64_t count, char *to)
{
	uint64_t offset = place * g->row_bytes, bytes = count * g->row_bytes;
	int ret = checkpoint_check(g->c, piece, offset, bytes);

	return ret ? ret : copy_bytes(g->c, piece->file, piece->offset + offset, bytes, to);
}

/* As many rows as one copy takes, with all that lies between them. */
static int read_block(const struct gather *g, const struct checkpoint_piece *piece, uint64_t place,
		      uint64_t count, char *to)
{
	char copy[COPY_BYTES];
	int ret;

	if (count == 1)
		return read_places(g, piece, place, 1, to);
	ret = read_places(g, piece, place, (count - 1) * g->step + 1, copy);
	for (uint64_t i = 0; !ret && i < count; i++)
		memcpy(to + i * g->skip * g->row_bytes, copy + i * g->step * g->row_bytes,
		       g->row_bytes);
	return ret;
}

static int read_piece(const struct gather *g, const struct checkpoint_piece *piece, uint64_t place,
		      uint64_t count, char *to)
{
	uint64_t fit = COPY_BYTES / g->row_bytes, block = fit ? (fit - 1) / g->step + 1 : 1;
	int ret = 0;

	if (g->step == 1 && g->skip == 1)
		return read_places(g, piece, place, count, to);
	while (!ret && count) {
		uint64_t n = count < block ? count : block;

		ret = read_block(g, piece, place, n, to);
		place += n * g->step;
		to += n * g->skip * g->row_bytes;
		count -= n;
	}
	return ret;
}

/* Rows that lie in the files of one host, from the one of @row on. */
static int read_host(const struct gather *g, int64_t row, uint64_t count, char *to)
{
	const struct checkpoint_piece *piece = checkpoint_piece_of(g->pieces, g->piece_count, row);
	uint64_t place = (uint64_t)checkpoint_place(piece, row);
	int ret = 0;

	while (!ret && count) {
		uint64_t n = ((uint64_t)piece->count - place - 1) / g->step + 1;

		n = n < count ? n : count;
		ret = read_piece(g, piece, place, n, to);
		place += n * g->step;
		to += n * g->skip * g->row_bytes;
		count -= n;
		for (; count && place >= (uint64_t)piece->count; piece++)
			place -= (uint64_t)piece->count;
	}
	return ret;
}

int checkpoint_gather(const struct embeng_checkpoint *c, int table, int slot,
		      const struct embeng_shard_rows *rows, void *to)
{
	struct gather g = {.c = c};
	int pieces = checkpoint_find_pieces(c, table, slot, &g.pieces), ret = 0;
	uint64_t count = (uint64_t)rows->count, stride = (uint64_t)rows->stride, common;

	if (pieces < 0)
		return pieces;
	g.piece_count = (size_t)pieces;
	g.row_bytes = model_row_bytes(&c->index.model->tables[table], (size_t)slot);
	common = common_divisor(stride, (uint64_t)g.pieces->stride);
	g.step = stride / common;
	g.skip = (uint64_t)g.pieces->stride / common;
	for (uint64_t k = 0; !ret && k < g.skip && k < count; k++)
		ret = read_host(&g, rows->first + (int64_t)(k * stride),
				(count - k - 1) / g.skip + 1, (char *)to + k * g.row_bytes);
	return ret ? ret : checkpoint_gather_deltas(c, table, slot, rows, to);
}

/* The array of a call's @slot, and that the call has what it needs. */
static int find_array(const struct embeng_checkpoint *c, const char *what, int table,
		      const char *slot, size_t count, const float *data)
{
	if (!c || (count && !data))
		return fail(-EINVAL, "%s: a checkpoint and data must be given", what);
	return model_slot(c->index.model, table, slot ? slot : "parameters");
}

int embeng_checkpoint_read(const struct embeng_checkpoint *c, int table, const char *slot,
			   int64_t first, size_t count, float *data)
{
	const struct embeng_shard_rows rows = {first, 1, (int64_t)count};
	int array = find_array(c, "embeng_checkpoint_read", table, slot, count, data);
	const struct table *t;

	if (array < 0)
		return array;
	t = &c->index.model->tables[table];
	if (first < 0 || first > t->rows || count > (uint64_t)(t->rows - first))
		return fail(-ERANGE,
			    "embeng_checkpoint_read: %zu rows from row %" PRId64
			    " of table %s, which has %" PRId64,
			    count, first, t->name, t->rows);
	return checkpoint_gather(c, table, array, &rows, data);
}

int embeng_checkpoint_read_shard(const struct embeng_checkpoint *c, int table, const char *slot,
				 const struct embeng_shard *shard, int64_t first, size_t count,
				 float *data)
{
	const char *what = "embeng_checkpoint_read_shard";
	int array = find_array(c, what, table, slot, count, data), ret;
	struct embeng_shard_rows rows;
	const struct table *t;

	if (array < 0)
		return array;
	t = &c->index.model->tables[table];
	ret = shard_range(what, shard, t->name, t->rows, first, count, &rows);
	return ret ? ret : checkpoint_gather(c, table, array, &rows, data);
}
