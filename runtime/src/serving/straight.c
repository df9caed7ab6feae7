// SPDX-License-Identifier: MIT
/*
 * Sums the rows of plans in which each id counts and rows are found without a search, which is most
 * of them. Nothing is decided for a single id here, so that it takes little more than the kernels.
 * Where the rows of a table follow each other the kernels get the caller's own ids. Where they lie in
 * several shards, ids become offsets, a round of samples at a time, together with those of the
 * next round that the kernels fetch ahead.
 *
 * The memory of a round is on the caller's stack; no lock is needed.
 */
#include "serving.h"

#include "../../../engine/kernels/scale.h"

#define SAMPLES_MOST 512u
#define OFFSETS_MOST 2048u
#define AHEAD_MOST (2 * FETCH_ROWS_MOST) /* short rows are fetched twice as far */
#define IDS_MOST (OFFSETS_MOST - AHEAD_MOST)

/*
 * struct straight - a round of samples
 * @offsets: @source has several pieces, so that the kernels get @rows
 * @first: first sample
 * @at: its first id
 * @count: samples
 * @bag: [count + 1] the first id of each, counted from @at
 * @scales: [count]
 * @rows: offsets of the ids from @at on
 */
struct straight {
	const struct plan *plan;
	const struct row_source *source;
	bool offsets;
	u64 first, at, count;
	u64 bag[SAMPLES_MOST + 1];
	float scales[SAMPLES_MOST];
	u64 rows[OFFSETS_MOST];
};

static bool rows_follow(const struct row_source *source)
{
	if (source->deltas)
		return false;
	return source->pieces ? source->piece_count == 1 : !source->ids;
}

/* Whether a round has room for each bag. */
static bool bags_are_short(const struct plan *p)
{
	int64_t longest = 0;

	for (size_t s = 0; p->in.form == EMBENG_RAGGED && s < p->samples; s++) {
		int64_t length = p->in.row_splits[s + 1] - p->in.row_splits[s];

		longest = length > longest ? length : longest;
	}
	return longest <= (int64_t)IDS_MOST;
}

bool straight_can(const struct plan *p, const struct row_source *source)
{
	if (p->in.form == EMBENG_SPARSE || p->length || p->prune ||
	    (p->weights && plan_is_scaled(plan_combiner(p))))
		return false;
	return rows_follow(source) || (source_is_even(source) && bags_are_short(p));
}

/* Takes as many samples into the round as it has room for. */
static void take_samples(struct straight *r)
{
	const struct plan *p = r->plan;
	const u64 *splits = p->in.form == EMBENG_RAGGED ? (const u64 *)p->in.row_splits : NULL;
	u64 most = p->samples - r->first, end = 0;

	if (most > SAMPLES_MOST)
		most = SAMPLES_MOST;
	r->at = splits ? splits[r->first] : r->first;
	r->bag[0] = r->count = 0;
	while (r->count < most) {
		end = splits ? splits[r->first + r->count + 1] - r->at : r->count + 1;
		if (r->offsets && end > IDS_MOST)
			break;
		r->bag[++r->count] = end;
	}
}

static inline void take_rows(struct straight *r, u64 count, const bool narrow)
{
	const struct row_source *source = r->source;
	const u64 dim = source->dim, base = (u64)(uintptr_t)source->base;

	for (u64 k = 0; k < count; k++) {
		u64 row = narrow ? ((const u32 *)r->plan->in.ids)[r->at + k]
				 : ((const u64 *)r->plan->in.ids)[r->at + k];
		const struct checkpoint_piece *piece = source_even_piece(source, row, false);

		r->rows[k] = ((u64)(uintptr_t)piece->rows - base) / sizeof(float) +
			     (row - (u64)piece->first) * dim;
	}
}

/* The offsets of the round's ids and of those behind them. Return: how many there are. */
static u64 take_offsets(struct straight *r)
{
	u64 left = r->plan->in.id_count - r->at, count = r->bag[r->count] + AHEAD_MOST;

	count = count < left ? count : left;
	if (r->plan->in.type == EMBENG_I32)
		take_rows(r, count, true);
	else
		take_rows(r, count, false);
	return count;
}

static void set_rows(struct straight *r, struct kernel_bag_work *work)
{
	const struct embeng_serving_input *in = &r->plan->in;

	if (r->offsets) {
		work->stride = 1;
		work->rows = r->rows;
		work->rows_count = take_offsets(r);
		return;
	}
	work->stride = work->dim;
	work->rows_count = in->id_count - r->at;
	if (in->type == EMBENG_I32)
		work->narrow = (const u32 *)in->ids + r->at;
	else
		work->rows = (const u64 *)in->ids + r->at;
}

static void set_scales(struct straight *r, struct kernel_bag_work *work)
{
	const u32 combiner = plan_combiner(r->plan);

	if (!plan_is_scaled(combiner))
		return;
	work->scales = r->scales;
	for (u64 s = 0; s < r->count; s++)
		r->scales[s] = scale_of(combiner, (double)(r->bag[s + 1] - r->bag[s]));
}

/* The kernels fetch ahead of themselves, so they cannot help their first rows. */
static void fetch_first(const struct kernel_bag_work *work)
{
	u64 count = work->rows_count < work->prefetch ? work->rows_count : work->prefetch;

	for (u64 k = 0; k < count; k++) {
		u64 row = work->narrow ? work->narrow[k] : work->rows[k];

		for (u32 i = 0; i < work->dim; i += 16)
			__builtin_prefetch(work->table + row * work->stride + i, 0, 2);
	}
}

void straight_sum(const struct plan *p, const struct row_source *source,
		  const struct kernel_ops *kernels)
{
	struct straight r;

	r.plan = p;
	r.source = source;
	r.offsets = !rows_follow(source);
	for (r.first = 0; r.first < p->samples; r.first += r.count) {
		struct kernel_bag_work work = {
			.table = source->base,
			.dim = (u32)p->table->dim,
			.prefetch = source->fetch.rows,
			.fetch = source->fetch.form,
			.bag = r.bag,
			.out = p->in.out + r.first * (u64)p->table->dim,
			.out_stride = (u64)p->table->dim,
		};

		take_samples(&r);
		work.weights = p->weights ? p->weights + r.at : NULL;
		set_rows(&r, &work);
		set_scales(&r, &work);
		if (!r.first)
			fetch_first(&work);
		plan_combine(kernels, plan_combiner(p), &work, r.count);
	}
}
