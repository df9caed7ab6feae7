// SPDX-License-Identifier: MIT
/*
 * Measures the ways of fetching ahead with the kernels themselves: lookups and Adagrad updates of
 * rows of 64 floats, out of tables that mostly stay in the third cache and out of larger ones.
 *
 * Other work comes and goes on a machine, so that the ways take turns and the fastest pass of each
 * counts. Where a table's pages happen to lie makes some ways up to twice as slow; each way is
 * measured on several tables, and the median of these counts. A way has to be faster than the one
 * that a device takes anyway by more than a thirtieth: less is noise.
 *
 * Tables live for one round of measurements. The functions run on one thread.
 */
#include "measure.h"

#include <errno.h>
#include <stdlib.h>

#include "../../../engine/kernels/kernels.h"
#include "../../../engine/kernels/optimizers.h"
#include "../../src/host/port.h"

#define DIM 64u
#define IDS 32768u
#define BAG 16u
#define SAMPLES (IDS / BAG)
#define GAP_MOST 23u /* rows between two that are updated: 12 in the mean */
#define TABLES 3
#define PASSES 15
#define WORTH(best, ns) ((ns) * 33 < (best) * 32)

/*
 * 24 MiB nearly fill a third cache of 32, where the ways differ most. Large tables have 256 MiB:
 * half of the rows of one of 64 MiB would come from that cache.
 */
#define NEAR_ROWS (3u << 15)
#define FAR_ROWS (1u << 20)

/* Neighbours of these distances were within a twentieth of them wherever both were measured. */
static const struct fetch_way lookup_ways[] = {{FETCH_ROWS_LOOKUP, KERNEL_FETCH_TOUCH},
					       {FETCH_ROWS_LOOKUP, KERNEL_FETCH_BURST},
					       {FETCH_ROWS_LOOKUP, KERNEL_FETCH_SECOND},
					       {24, KERNEL_FETCH_SECOND},
					       {96, KERNEL_FETCH_SECOND},
					       {FETCH_ROWS_LOOKUP, KERNEL_FETCH_FIRST},
					       {24, KERNEL_FETCH_FIRST}};
static const struct fetch_way update_ways[] = {{FETCH_ROWS_UPDATE, KERNEL_FETCH_SECOND},
					       {FETCH_ROWS_UPDATE, KERNEL_FETCH_AGAIN},
					       {16, KERNEL_FETCH_SECOND},
					       {64, KERNEL_FETCH_SECOND}};

/* The memory of one table and what is done with it. */
struct tune_table {
	u64 table_rows, groups;
	float *table, *slot, *gradients, *out;
	u32 *rows, *occ;
	u64 *bag;
	struct kernel_group *group;
	void *scratch;
	u64 state; /* the generator of random numbers */
};

static bool is_update(enum tune_kind kind)
{
	return kind == TUNE_NEAR_UPDATE || kind == TUNE_FAR_UPDATE;
}

static u32 draw_number(struct tune_table *t, u64 limit)
{
	t->state = t->state * 6364136223846793005u + 1442695040888963407u;
	return (u32)((t->state >> 33) % limit);
}

static u64 size_table(const struct tune_table *t)
{
	return t->table_rows * DIM * sizeof(float);
}

static void free_trial_table(struct tune_table *t)
{
	port_free_table(t->table, size_table(t));
	port_free_table(t->slot, size_table(t));
	port_free(t->gradients);
	port_free(t->out);
	port_free(t->rows);
	port_free(t->occ);
	port_free(t->bag);
	port_free(t->group);
	free(t->scratch);
}

static void fill_trial_table(struct tune_table *t)
{
	/* A page that was never written is the one of zeros, and in the cache. */
	for (u64 i = 0; i < t->table_rows; i++) {
		t->table[i * DIM] = 1;
		if (t->slot)
			t->slot[i * DIM] = 1;
	}
	for (u64 s = 0; s <= SAMPLES; s++)
		t->bag[s] = s * BAG;
	for (u64 k = 0; k < t->groups; k++)
		t->occ[k] = (u32)k;
	/* In the order of the rows gradients would come one after another, as they never do. */
	for (u64 k = t->groups; k > 1; k--) {
		u32 other = draw_number(t, k), saved = t->occ[k - 1];

		t->occ[k - 1] = t->occ[other];
		t->occ[other] = saved;
	}
	for (u64 i = 0; i < t->groups * DIM; i++)
		t->gradients[i] = 0.001f;
}

static bool make_trial_table(struct tune_table *t, enum tune_kind kind, u64 seed)
{
	const bool near = kind == TUNE_NEAR_LOOKUP || kind == TUNE_NEAR_UPDATE;
	const u64 scratch = (kernel_scratch_bytes(DIM) + 63) / 64 * 64;

	*t = (struct tune_table){.table_rows = near ? NEAR_ROWS : FAR_ROWS, .state = seed};
	t->groups = t->table_rows / (GAP_MOST + 1);
	t->table = port_alloc_table(size_table(t), NULL);
	if (is_update(kind))
		t->slot = port_alloc_table(size_table(t), NULL);
	t->gradients = port_alloc(t->groups * DIM * sizeof(float));
	t->out = port_alloc(SAMPLES * DIM * sizeof(float));
	t->rows = port_alloc(IDS * sizeof(u32));
	t->occ = port_alloc(t->groups * sizeof(u32));
	t->bag = port_alloc((SAMPLES + 1) * sizeof(u64));
	t->group = port_alloc(t->groups * sizeof(*t->group));
	t->scratch = aligned_alloc(64, scratch);
	if (!t->table || (is_update(kind) && !t->slot) || !t->gradients || !t->out || !t->rows ||
	    !t->occ || !t->bag || !t->group || !t->scratch)
		return false;
	fill_trial_table(t);
	return true;
}

/* Other rows each time, because those of the time before are in a cache. */
static double time_lookup(struct tune_table *t, const struct kernel_ops *kernels,
			  struct fetch_way way)
{
	const struct fetch_way fit = fetch_lookup(way, DIM);
	const struct kernel_bag_work work = {.table = t->table,
					     .stride = DIM,
					     .dim = DIM,
					     .prefetch = fit.rows,
					     .fetch = fit.form,
					     .narrow = t->rows,
					     .rows_count = IDS,
					     .bag = t->bag,
					     .out = t->out,
					     .out_stride = DIM};
	struct port_fpu fpu;
	u64 began;

	for (u32 k = 0; k < IDS; k++)
		t->rows[k] = draw_number(t, t->table_rows);
	port_fpu_begin(&fpu);
	began = port_now_ns();
	kernels->lookup(&work, 0, SAMPLES);
	began = port_now_ns() - began;
	port_fpu_end(&fpu);
	return (double)began / IDS;
}

static double time_update(struct tune_table *t, const struct kernel_ops *kernels,
			  struct fetch_way way)
{
	const struct fetch_way fit = fetch_update(way, DIM, 1);
	const struct kernel_segment segment = {
		.end = t->groups, .gradients = t->gradients, .stride = DIM, .far = true};
	struct kernel_update u = {.optimizer = KERNEL_ADAGRAD,
				  .dim = DIM,
				  .stride = DIM,
				  .prefetch = fit.rows,
				  .fetch = fit.form,
				  .table = t->table,
				  .slots = {t->slot},
				  .segment_count = 1,
				  .segments = &segment,
				  .lr = 0.01f,
				  .step = 1};
	u64 row = draw_number(t, t->table_rows - t->groups * GAP_MOST), began;
	struct port_fpu fpu;

	for (u64 k = 0; k < t->groups; k++) {
		t->group[k] = (struct kernel_group){row, (u32)k, 1};
		row += 1 + draw_number(t, GAP_MOST);
	}
	port_fpu_begin(&fpu);
	kernel_prepare(&u);
	began = port_now_ns();
	kernels->update_rows(&u, t->group, t->groups, 0, t->occ, t->scratch);
	began = port_now_ns() - began;
	port_fpu_end(&fpu);
	return (double)began / (double)t->groups;
}

static bool same_way(struct fetch_way a, struct fetch_way b)
{
	return a.rows == b.rows && a.form == b.form;
}

/* The ways of a kind, the device's own first. */
static void list_trials(enum tune_kind kind, const struct fetch_plan *plan,
			struct tune_found *found)
{
	const struct fetch_ways *ways = kind == TUNE_NEAR_LOOKUP || kind == TUNE_NEAR_UPDATE
						? &plan->near
						: &plan->far;
	const struct fetch_way own = is_update(kind) ? ways->update : ways->lookup;
	const struct fetch_way *all = is_update(kind) ? update_ways : lookup_ways;
	const size_t count = is_update(kind) ? sizeof(update_ways) / sizeof(update_ways[0])
					     : sizeof(lookup_ways) / sizeof(lookup_ways[0]);

	*found = (struct tune_found){.trials[0].way = own, .count = 1};
	for (size_t i = 0; i < count; i++) {
		if (!same_way(all[i], own))
			found->trials[found->count++].way = all[i];
	}
}

struct tune_watch {
	tune_progress_fn *progress;
	void *arg;
	int done;
};

/* The fastest pass of each way over one table, in @ns. */
static void measure_table(struct tune_table *t, enum tune_kind kind,
			  const struct kernel_ops *kernels, const struct tune_found *found,
			  double *ns, struct tune_watch *watch)
{
	for (int pass = 0; pass < PASSES; pass++) {
		watch->progress(watch->arg, kind, watch->done++, TUNE_KINDS * TABLES * PASSES);
		for (int i = 0; i < found->count; i++) {
			const struct fetch_way way = found->trials[i].way;
			double took = is_update(kind) ? time_update(t, kernels, way)
						      : time_lookup(t, kernels, way);

			if (!pass || took < ns[i])
				ns[i] = took;
		}
	}
}

static double median_of_three(double a, double b, double c)
{
	double low = a < b ? a : b, high = a < b ? b : a;

	return c < low ? low : c > high ? high : c;
}

/* The fastest, but the first unless another is worth it. */
static void choose_best(struct tune_found *found)
{
	for (int i = 1; i < found->count; i++) {
		const double ns = found->trials[i].ns;

		if (WORTH(found->trials[0].ns, ns) && ns < found->trials[found->best].ns)
			found->best = i;
	}
}

static int measure_kind(enum tune_kind kind, const struct kernel_ops *kernels,
			struct tune_found *found, struct tune_watch *watch)
{
	double ns[TABLES][TUNE_TRIALS];

	_Static_assert(TABLES == 3, "the median below is of three");
	for (int i = 0; i < TABLES; i++) {
		struct tune_table table;
		bool made = make_trial_table(&table, kind, (u64)i + 1);

		if (made)
			measure_table(&table, kind, kernels, found, ns[i], watch);
		free_trial_table(&table);
		if (!made)
			return -ENOMEM;
	}
	for (int i = 0; i < found->count; i++)
		found->trials[i].ns = median_of_three(ns[0][i], ns[1][i], ns[2][i]);
	choose_best(found);
	return 0;
}

int tune_measure(const struct kernel_ops *kernels, const struct fetch_plan *plan,
		 struct tune_found *found, tune_progress_fn *progress, void *arg)
{
	struct tune_watch watch = {.progress = progress, .arg = arg};
	int ret = 0;

	for (int kind = 0; !ret && kind < TUNE_KINDS; kind++) {
		list_trials((enum tune_kind)kind, plan, &found[kind]);
		ret = measure_kind((enum tune_kind)kind, kernels, &found[kind], &watch);
	}
	return ret;
}
