/* SPDX-License-Identifier: MIT */
/*
 * The optimizers that most tables have, compiled apart for the dims that most
 * tables have. Beside the traffic of a row there is time for few instructions, and 80 more make an
 * update half as slow again: lengths that are known need none.
 */
#ifndef ENGINE_KERNELS_BODY_ROWS_H
#define ENGINE_KERNELS_BODY_ROWS_H

#include "body_order.h"

#define ROWS_KINDS(X, DIM) \
	X(SGD, DIM) \
	X(ADAGRAD, DIM) \
	X(ADAM, DIM) \
	X(ROWWISE_ADAGRAD, DIM)

/**
 * struct rows_call - the arguments of one call of these functions
 * @u: the update
 * @only: where all occurrences are, which weigh 1 and are numbered as their gradients are; NULL: to
 *	be looked for
 * @occ: numbers of occurrences, by group
 * @end: how many there are
 * @far: so many occurrences ahead of each, where there is @only, its gradient is fetched; 0: it is
 *	not. If rows are fetched again, only for those that have several
 * @leap: turns_leap()
 * @scratch: memory to sum in
 */
struct rows_call {
	const struct kernel_update *u;
	const struct kernel_segment *only;
	const u32 *occ;
	u64 end, far;
	bool leap;
	void *scratch;
};

/* @n occurrences of one segment, from the @first on. */
INLINE struct run rows_run(const struct rows_call *c, u64 first, u64 n)
{
	const u32 *occ = c->occ + first;

	if (c->only)
		return (struct run){
			.only = c->only, .occ = occ, .n = n, .end = c->end - first, .far = c->far
		};
	return (struct run){ .only = kernel_find_segment(c->u->segments, c->u->segment_count, *occ),
			     .occ = occ,
			     .n = n };
}

INLINE void rows_sum(const struct rows_call *c, const struct kernel_group *group, float *sum,
		     const u32 dim)
{
	const struct run r = rows_run(c, group->first, group->count);

	if (r.n > KERNEL_RUN || (!c->only && r.occ[r.n - 1] >= r.only->end))
		return KERNEL(row_gradient)(c->u, sum, r.occ, r.n, c->scratch);
	run_sum(&r, sum, dim, r.only->coef);
}

/* Gradients of rows that are taken in leaps by blocks have their turn a block later. */
INLINE u64 rows_far_ahead(const struct kernel_update *u, const bool leap)
{
	if (!u->segments->far || !u->prefetch)
		return 0;
	return leap ? TURNS_BLOCK : u->prefetch;
}

/* @groups: [n + ahead], n of which are of this call, at least one. */
INLINE struct rows_call rows_begin(const struct kernel_update *u, const struct kernel_segment *only,
				   const struct kernel_group *groups, u64 n, u64 ahead,
				   const u32 *occ, void *scratch)
{
	const struct kernel_group *last = &groups[n + ahead - 1];
	const bool leap = turns_leap(u, groups, n);

	return (struct rows_call){ .u = u,
				   .only = only,
				   .occ = occ,
				   .end = (u64)last->first + last->count,
				   .far = rows_far_ahead(u, leap),
				   .leap = leap,
				   .scratch = scratch };
}

#define ROWS_SLOTS(KIND) SLOTS_KEPT(KERNEL_##KIND, 0 KERNEL_##KIND##_SLOTS(ONE_MORE))

#define ROWS_COLUMNS(KIND, DIM) \
	INLINE void rows_one_##KIND##_##DIM(const struct rows_call *c, u64 row, u64 k, vec *check) \
	{ \
		const struct run r = rows_run(c, k, 1); \
		const float *coef, *g = run_at(&r, 0, &coef); \
		if (!rows_again(c->u, DIM, ROWS_SLOTS(KIND))) \
			run_ahead(&r, 0, 0, DIM); \
		if (r.only->coef) \
			columns_##KIND(c->u, row, g, *coef, DIM, GRADIENT_WEIGHTED, true, check); \
		else \
			columns_##KIND(c->u, row, g, 1.0f, DIM, GRADIENT_ONE, true, check); \
	} \
	INLINE bool rows_all_##KIND##_##DIM(const struct rows_call *c, \
					    const struct kernel_group *groups, u64 n, u64 ahead) \
	{ \
		float *sum = kernel_scratch_sum(c->scratch, DIM); \
		vec check = { 0 }; \
		for (u64 i = 0; i < n; i++) { \
			const struct kernel_group *group = &groups[turn_of(i, n, c->leap)]; \
			rows_ahead(c->u, groups, i, n, ahead, c->leap, c->occ, c->only, DIM, \
				   ROWS_SLOTS(KIND)); \
			if (group->count == 1) { \
				rows_one_##KIND##_##DIM(c, group->row, group->first, &check); \
				continue; \
			} \
			rows_sum(c, group, sum, DIM); \
			columns_##KIND(c->u, group->row, sum, 1.0f, DIM, GRADIENT_SUM, true, \
				       &check); \
		} \
		return vec_any_nan(check); \
	} \
	static bool rows_##KIND##_##DIM(const struct kernel_update *u, \
					const struct kernel_group *groups, u64 n, u64 ahead, \
					const u32 *occ, void *scratch) \
	{ \
		const struct rows_call c = rows_begin(u, NULL, groups, n, ahead, occ, scratch); \
		return rows_all_##KIND##_##DIM(&c, groups, n, ahead); \
	} \
	static bool plain_##KIND##_##DIM(const struct kernel_update *u, \
					 const struct kernel_group *groups, u64 n, u64 ahead, \
					 const u32 *occ, void *scratch) \
	{ \
		const struct kernel_segment only = plain_segment(u); \
		const struct rows_call c = rows_begin(u, &only, groups, n, ahead, occ, scratch); \
		return rows_all_##KIND##_##DIM(&c, groups, n, ahead); \
	}
#define ROWS_OF_DIM(DIM) ROWS_KINDS(ROWS_COLUMNS, DIM)

USUAL_DIMS(ROWS_OF_DIM)

typedef bool (*rows_fn)(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			u64 ahead, const u32 *occ, void *scratch);

#define ROWS_ENTRY(KIND, DIM) [KERNEL_##KIND] = { rows_##KIND##_##DIM, plain_##KIND##_##DIM },
#define ROWS_TABLE(DIM) \
	static const rows_fn rows_functions_##DIM[KERNEL_OPTIMIZER_COUNT][2] = { ROWS_KINDS( \
		ROWS_ENTRY, DIM) };

USUAL_DIMS(ROWS_TABLE)

#define ROWS_CASE(DIM) \
	case DIM: \
		return rows_functions_##DIM[u->optimizer][update_is_plain(u)];

/* NULL: none is compiled apart. */
static rows_fn rows_function(const struct kernel_update *u)
{
	if (u->flags || u->mends)
		return NULL;
	switch (u->dim) {
		USUAL_DIMS(ROWS_CASE)
	default:
		return NULL;
	}
}

bool KERNEL(update_rows)(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			 u64 ahead, const u32 *occ, void *scratch)
{
	const update_fn update = update_functions[u->optimizer];
	const struct slots_kept slots = SLOTS_KEPT(u->optimizer,
						   kernel_optimizers[u->optimizer].slot_count);
	const rows_fn rows = n ? rows_function(u) : NULL;
	const bool leap = turns_leap(u, groups, n);
	vec check = { 0 };

	if (rows)
		return rows(u, groups, n, ahead, occ, scratch);
	for (u64 i = 0; i < n; i++) {
		rows_ahead(u, groups, i, n, ahead, leap, occ, NULL, u->dim, slots);
		update_group(u, update, &groups[turn_of(i, n, leap)], occ, scratch, &check);
	}
	return vec_any_nan(check);
}

bool KERNEL(update_row)(const struct kernel_update *u, u64 row, const float *sum)
{
	vec check = { 0 };

	update_functions[u->optimizer](u, row, sum, 1.0f, GRADIENT_SUM, &check);
	return vec_any_nan(check);
}

#endif
