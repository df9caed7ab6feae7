/* SPDX-License-Identifier: MIT */
/*
 * Lookups on the CPU. A plan is one input that was parsed and checked; a source tells where the
 * rows of a table are. Only opening and live lookups allocate memory.
 */
#ifndef EMBENG_SERVING_H
#define EMBENG_SERVING_H

#include "../../../engine/kernels/kernels.h"
#include "batch/input.h"
#include "checkpoint/checkpoint.h"

/*
 * struct row_source - the location of the rows of one table
 * @base: address that offsets, in floats, are counted from
 * @dim: floats of a row
 * @deltas: checkpoint whose deltas have rows of the table; NULL: none has
 * @table: index of the table in @deltas
 * @checkpoint: checkpoint whose chunks are checked before they are read; NULL: no check is needed
 * @pieces: pieces in row order without gaps; NULL: @ids is used, or where that is NULL, too, the rows
 *	follow each other at @base
 * @piece_count: number of @pieces, at least 1
 * @piece_rows: rows of each piece but the last; 0: pieces have different numbers of rows
 * @ids: rising row ids; row ids[k] is the k-th row at @base
 * @id_count: number of @ids
 * @fetch: how rows are fetched ahead
 * @copy: memory of the source's own, where @base leads; NULL: it has none
 * @copy_bytes: its size
 */
struct row_source {
	const float *base;
	size_t dim;
	const struct embeng_checkpoint *deltas;
	int table;
	const struct embeng_checkpoint *checkpoint;
	const struct checkpoint_piece *pieces;
	size_t piece_count;
	int64_t piece_rows;
	const int64_t *ids;
	size_t id_count;
	struct fetch_way fetch;
	void *copy;
	size_t copy_bytes;
};

struct embeng_serving {
	struct embeng_model *model; /* tables and features that are served */
	const struct kernel_ops *kernels;
	struct embeng_checkpoint *checkpoint; /* NULL: rows come from an engine or were copied */
	struct row_source *sources; /* [tables]; over an engine only their @fetch is set */
	struct embeng *engine;	    /* NULL: rows come from a checkpoint */
	int *tables;		    /* [tables] index of each in the engine's model */
};

/*
 * struct plan - one input, parsed
 * @in: copy of the caller's structure
 * @f: feature of the input
 * @table: the feature's table
 * @samples: number of bags in the input
 * @length: positions of a bag in the output, one for each id; 0: the bag is combined
 * @weights: weights of the ids; NULL: all are 1
 * @finite: weights must be, also those of ids that are left out
 * @prune: leave out negative ids and, by the combiner, weights not above 0
 * @rank: dimensions of @shape
 * @shape: shape of the output, with dim as the last dimension
 * @elements: floats in the output
 */
struct plan {
	struct embeng_serving_input in;
	const struct feature *f;
	const struct table *table;
	size_t samples;
	size_t length;
	const float *weights;
	bool finite;
	bool prune;
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
	size_t elements;
};

/* Makes a plan from the sizes of an input. Return: 0, or a negative errno with a sentence. */
int plan_make(const struct embeng_model *model, const struct embeng_serving_input *given,
	      struct plan *plan);
/* The k-th input, whatever the structure's size is in the caller's build. */
const struct embeng_serving_input *input_at(const struct embeng_serving_input *inputs, size_t k);

/*
 * plan_check() - check everything else: splits, places, room for the output, and every id
 * @source: rows whose chunks are checked, too; NULL: only the ids are checked
 */
int plan_check(const struct plan *plan, const struct row_source *source);

/* Computes the output of a checked plan. */
void plan_sum(const struct plan *plan, const struct row_source *source,
	      const struct kernel_ops *kernels);

/*
 * Iterates over the ids of a bag, leaving out pruned ones.
 * @kept is the number of ids that plan_next() has returned.
 */
struct bag {
	size_t at, end, kept;
	int64_t id;
	float weight;
};

static inline struct coo plan_coo(const struct plan *p)
{
	return (struct coo){p->in.indices, p->in.id_count, p->in.shape, p->in.rank};
}

/* Starts the bag of @sample, whose ids begin at position @first. */
static inline struct bag plan_bag(const struct plan *p, size_t sample, size_t first)
{
	struct bag bag = {.at = first, .end = first};
	struct coo coo;

	switch (p->in.form) {
	case EMBENG_DENSE:
		bag.end++;
		break;
	case EMBENG_RAGGED:
		bag.end = (size_t)p->in.row_splits[sample + 1];
		break;
	case EMBENG_SPARSE:
		coo = plan_coo(p);
		while (bag.end < coo.count && coo_sample(&coo, bag.end) == sample)
			bag.end++;
		break;
	}
	return bag;
}

static inline bool plan_pruned(const struct plan *p, const struct bag *bag)
{
	return bag->id < 0 ||
	       (p->table->combiner != EMBENG_SUM && !p->length && !(bag->weight > 0));
}

static inline bool plan_next(const struct plan *p, struct bag *bag)
{
	while (bag->at < bag->end) {
		size_t k = bag->at++;

		bag->id = p->in.type == EMBENG_I32 ? ((const int32_t *)p->in.ids)[k]
						   : ((const int64_t *)p->in.ids)[k];
		bag->weight = p->weights ? p->weights[k] : 1.0f;
		if (p->prune && plan_pruned(p, bag))
			continue;
		bag->kept++;
		return true;
	}
	return false;
}

/* False if the id from plan_next() is beyond the end of a sequence, so that its row is not read. */
static inline bool plan_reads(const struct plan *p, const struct bag *bag)
{
	return !p->length || bag->kept <= p->length;
}

/* How the rows of a bag are combined. A single row is its own sum, mean, sqrtn and largest. */
static inline uint32_t plan_combiner(const struct plan *p)
{
	if (p->in.form == EMBENG_DENSE || p->length)
		return KERNEL_SUM;
	switch (p->table->combiner) {
	case EMBENG_MEAN:
		return KERNEL_MEAN;
	case EMBENG_SQRTN:
		return KERNEL_SQRTN;
	case EMBENG_MAX:
		return KERNEL_MAX;
	default:
		return KERNEL_SUM;
	}
}

/* Whether outputs are multiplied by a number that the weights of their bags give. */
static inline bool plan_is_scaled(uint32_t combiner)
{
	return combiner == KERNEL_MEAN || combiner == KERNEL_SQRTN;
}

static inline void plan_combine(const struct kernel_ops *kernels, uint32_t combiner,
				const struct kernel_bag_work *work, u64 samples)
{
	if (combiner == KERNEL_MAX)
		kernels->lookup_max(work, 0, samples);
	else
		kernels->lookup(work, 0, samples);
}

/* check.c: whether all ids are rows of the table. It has no branches, and takes little time. */
bool plan_ids_in_table(const struct plan *p);

/* straight.c: whether straight_sum() can compute the output of a checked plan, and that. */
bool straight_can(const struct plan *p, const struct row_source *source);
void straight_sum(const struct plan *p, const struct row_source *source,
		  const struct kernel_ops *kernels);

/* rows.c */

/* Makes a source from pieces that need no check; @count is at least 1. */
struct row_source source_of(const struct checkpoint_piece *pieces, size_t count, size_t dim);
/* Makes a source for a table of a checkpoint. Return: 0, -ENOENT. */
int source_open(const struct embeng_checkpoint *checkpoint, int table, size_t dim,
		struct row_source *source);
/* The index of a row among the source's ids. */
uint64_t source_place(const struct row_source *source, int64_t row);
/*
 * source_all_good() - tell whether the chunks of all rows were found good before
 * @ids: [count] of @type, all of which are rows of the table
 *
 * False also where it would take long to say. It takes about a nanosecond for each id.
 */
bool source_all_good(const struct row_source *source, int type, const void *ids, size_t count);
/* Checks the chunks of a row. Return: 0, or -EBADMSG. */
int source_check(const struct row_source *source, int64_t row);
/* Checks all chunks of a table, so that none needs a check later. */
int source_check_all(struct row_source *source);
/*
 * source_copy() - check all rows of a table and copy them, so that its checkpoint may be closed
 * @t: the table that is served
 *
 * Return: 0, -EBADMSG, -EIO, -ENOMEM.
 */
int source_copy(struct row_source *source, const struct table *t);
/* Gives the memory of a copy back. */
void source_close(struct row_source *source);
/* Maps all pages of a table, and lets none of its chunks be checked. */
void source_trust(struct row_source *source);

/* Whether each row is in the piece that division by @piece_rows gives, at its place in row order. */
static inline bool source_is_even(const struct row_source *source)
{
	return source->pieces && !source->deltas && source->pieces[0].stride == 1 &&
	       (source->piece_count == 1 || source->piece_rows);
}

/* The piece of a row of a source that is even; @one: it has one. */
static inline const struct checkpoint_piece *source_even_piece(const struct row_source *source,
							       uint64_t row, const bool one)
{
	return source->pieces + (one ? 0 : row / (uint64_t)source->piece_rows);
}

/* Finds the piece of a row, by division if possible, since a search mispredicts most branches. */
static inline const struct checkpoint_piece *source_piece(const struct row_source *source,
							  int64_t row)
{
	if (source->piece_count == 1)
		return source->pieces;
	if (source->piece_rows)
		return &source->pieces[row / source->piece_rows];
	return checkpoint_piece_of(source->pieces, source->piece_count, row);
}

/* Finds the piece of a row, in a delta if one has it, and its place there. */
static inline const struct checkpoint_piece *source_find(const struct row_source *source,
							 int64_t row, int64_t *place)
{
	const struct checkpoint_piece *piece;

	if (source->deltas) {
		piece = checkpoint_find_delta(source->deltas, source->table, 0, row, place);
		if (piece)
			return piece;
	}
	piece = source_piece(source, row);
	*place = checkpoint_place(piece, row);
	return piece;
}

/* Offset of a row from the source's base in floats. The source must have the row. */
static inline uint64_t source_offset(const struct row_source *source, int64_t row)
{
	const struct checkpoint_piece *piece;
	int64_t place;

	if (!source->pieces)
		return (source->ids ? source_place(source, row) : (uint64_t)row) * source->dim;
	piece = source_find(source, row, &place);
	return ((uintptr_t)piece->rows - (uintptr_t)source->base) / sizeof(float) +
	       (uint64_t)place * source->dim;
}

/* live.c: looks up in an engine. @plans are checked. */
int live_lookup(const struct embeng_serving *serving, const struct embeng_serving_input *inputs,
		size_t count);

#endif
