/* SPDX-License-Identifier: MIT */
/*
 * Lookups on the CPU. A plan is one input, understood and checked; sources say where the
 * rows of a table lie. Nothing here allocates but what opens, and live lookups.
 */
#ifndef EMBENG_SERVING_H
#define EMBENG_SERVING_H

#include "../../../engine/kernels/kernels.h"
#include "batch/input.h"
#include "checkpoint/checkpoint.h"

/*
 * struct row_source - where the rows of one table lie
 * @base: offsets are counted in floats from here
 * @dim: floats of a row
 * @checkpoint: whose chunks are checked before they are read; NULL: they are good
 * @pieces: in row order without gaps; NULL: @ids
 * @piece_count: of @pieces, at least 1
 * @piece_rows: rows of each piece but the last; 0: they differ
 * @ids: rising; row ids[k] is the k-th of those at @base
 * @id_count: of @ids
 */
struct row_source {
	const float *base;
	size_t dim;
	const struct embeng_checkpoint *checkpoint;
	const struct checkpoint_piece *pieces;
	size_t piece_count;
	int64_t piece_rows;
	const int64_t *ids;
	size_t id_count;
};

struct embeng_serving {
	struct embeng_model *model; /* tables and features that are served */
	const struct kernel_ops *kernels;
	struct embeng_checkpoint *checkpoint; /* NULL: live */
	struct row_source *sources;	      /* [tables], of the checkpoint */
	struct embeng *engine;		      /* NULL: checkpoint */
	int *tables;			      /* [tables], the engine's index of each */
};

/*
 * struct plan - one input, understood
 * @in: a copy of the caller's
 * @f: its feature
 * @table: the feature's table
 * @samples: bags of the input
 * @length: positions that a bag becomes, one for each id; 0: it is combined
 * @weights: NULL: all 1
 * @prune: leave out negative ids and, by the combiner, weights not above 0
 * @rank: of @shape
 * @shape: the output's, dim and all
 * @elements: of the output
 */
struct plan {
	struct embeng_serving_input in;
	const struct feature *f;
	const struct table *table;
	size_t samples;
	size_t length;
	const float *weights;
	bool prune;
	size_t rank;
	int64_t shape[EMBENG_MAX_RANK + 1];
	size_t elements;
};

/* The input as far as its sizes say: 0, or a negative errno with a sentence. */
int plan_make(const struct embeng_model *model, const struct embeng_serving_input *given,
	      struct plan *plan);
/* The k-th of inputs, whatever their size in the caller's build. */
const struct embeng_serving_input *input_at(const struct embeng_serving_input *inputs, size_t k);

/*
 * plan_check() - the rest: splits, places, room for the output, every id
 * @source: its chunks are checked, too; NULL: ids alone
 */
int plan_check(const struct plan *plan, const struct row_source *source);

/* The output of a checked plan. */
void plan_sum(const struct plan *plan, const struct row_source *source,
	      const struct kernel_ops *kernels);

/*
 * The ids of a bag that count, one after another; what is pruned is passed over.
 * @kept counts those that plan_next() gave.
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

/* The bag of @sample, whose ids begin at position @first. */
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
	return bag->id < 0 || (p->table->combiner != EMBENG_SUM && !p->length &&
			       !(bag->weight > 0));
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

/* Is the id that plan_next() gave read, or beyond a sequence's end? */
static inline bool plan_reads(const struct plan *p, const struct bag *bag)
{
	return !p->length || bag->kept <= p->length;
}

/* rows.c */

/* Of good pieces, at least one. */
struct row_source source_of(const struct checkpoint_piece *pieces, size_t count, size_t dim);
/* Of a table of the checkpoint. Return: 0, -ENOENT. */
int source_open(const struct embeng_checkpoint *checkpoint, int table, size_t dim,
		struct row_source *source);
/* The place of a row among its ids. */
uint64_t source_place(const struct row_source *source, int64_t row);
/* The chunks of a row. Return: 0, or -EBADMSG. */
int source_check(const struct row_source *source, int64_t row);
/* All of a table's chunks, so that none need be checked later. */
int source_check_all(struct row_source *source);

/* By division where that finds it: a search mispredicts for most rows. */
static inline const struct checkpoint_piece *source_piece(const struct row_source *source,
							  int64_t row)
{
	if (source->piece_count == 1)
		return source->pieces;
	if (source->piece_rows)
		return &source->pieces[row / source->piece_rows];
	return checkpoint_piece_of(source->pieces, source->piece_count, row);
}

/* Floats from the source's base to a row that it has. */
static inline uint64_t source_offset(const struct row_source *source, int64_t row)
{
	const struct checkpoint_piece *piece;

	if (!source->pieces)
		return source_place(source, row) * source->dim;
	piece = source_piece(source, row);
	return ((uintptr_t)piece->rows - (uintptr_t)source->base) / sizeof(float) +
	       (uint64_t)checkpoint_place(piece, row) * source->dim;
}

/* live.c: @plans are checked. */
int live_lookup(const struct embeng_serving *serving, const struct embeng_serving_input *inputs,
		size_t count);

#endif
