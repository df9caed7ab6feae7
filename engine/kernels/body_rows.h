/* SPDX-License-Identifier: MIT */
/*
 * Part of body.h: the optimizers that most tables have, compiled apart for the dims that most
 * tables have. Beside the traffic of a row there is time for few instructions, and 80 more make an
 * update half as slow again: lengths that are known need none.
 */

#define ROWS_KINDS(X, DIM) \
	X(SGD, DIM) \
	X(ADAGRAD, DIM) \
	X(ADAM, DIM)
#define ROWS_DIMS(X) X(16) X(32) X(64) X(128)

/* As run_sum(), of occurrences that are all of one segment: their addresses need no list. */
INLINE void rows_add(const struct kernel_segment *s, const u32 *occ, u64 n, float *sum,
		     const u32 column, const u32 count, const bool weighted)
{
	vec acc[8] = { { 0 } };

	for (u64 k = 0; k < n; k++) {
		const float *coef, *g = occurrence_gradient(s, occ[k], &coef) + column;

		UNROLL
		for (u32 i = 0; i < count; i++) {
			vec x = vec_load(g + i * VEC);

			acc[i] = weighted ? vec_fma(vec_all(*coef), x, acc[i]) : acc[i] + x;
		}
	}
	UNROLL
	for (u32 i = 0; i < count; i++)
		vec_store(sum + column + i * VEC, acc[i]);
}

INLINE void rows_sum(const struct kernel_update *u, const struct kernel_group *group,
		     const u32 *occ, float *sum, const u32 dim, void *scratch)
{
	const struct kernel_segment *s =
		kernel_find_segment(u->segments, u->segment_count, occ[0]);

	if (group->count > KERNEL_RUN || occ[group->count - 1] >= s->end)
		return row_gradient(u, sum, occ, group->count, scratch);
	for (u32 c = 0; c < dim; c += 8 * VEC) {
		const u32 count = dim < 8 * VEC ? dim / VEC : 8;

		if (s->coef)
			rows_add(s, occ, group->count, sum, c, count, true);
		else
			rows_add(s, occ, group->count, sum, c, count, false);
	}
}

#define ROWS_COLUMNS(KIND, DIM) \
	INLINE void rows_one_##KIND##_##DIM(const struct kernel_update *u, u64 row, u32 occ) \
	{ \
		const struct kernel_segment *s = \
			kernel_find_segment(u->segments, u->segment_count, occ); \
		const float *coef, *g = occurrence_gradient(s, occ, &coef); \
		if (s->coef) \
			columns_##KIND(u, row, g, *coef, DIM, GRADIENT_WEIGHTED, true); \
		else \
			columns_##KIND(u, row, g, 1.0f, DIM, GRADIENT_ONE, true); \
	} \
	static void rows_##KIND##_##DIM(const struct kernel_update *u, \
					const struct kernel_group *groups, u64 n, u64 ahead, \
					const u32 *occ, void *scratch) \
	{ \
		const u64 near = u->prefetch; \
		float *sum = kernel_scratch_sum(scratch, DIM); \
		for (u64 i = 0; i < n; i++) { \
			const struct kernel_group *group = &groups[turn_of(i, n)]; \
			rows_ahead(u, groups, i, n, ahead, near, occ, DIM, \
				   0 KERNEL_##KIND##_SLOTS(ONE_MORE)); \
			if (group->count == 1) { \
				rows_one_##KIND##_##DIM(u, group->row, occ[group->first]); \
				continue; \
			} \
			rows_sum(u, group, occ + group->first, sum, DIM, scratch); \
			columns_##KIND(u, group->row, sum, 1.0f, DIM, GRADIENT_SUM, true); \
		} \
	}
#define ROWS_OF_DIM(DIM) ROWS_KINDS(ROWS_COLUMNS, DIM)

ROWS_DIMS(ROWS_OF_DIM)

typedef void (*rows_fn)(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			u64 ahead, const u32 *occ, void *scratch);

#define ROWS_ENTRY(KIND, DIM) [KERNEL_##KIND] = rows_##KIND##_##DIM,
#define ROWS_TABLE(DIM) \
	static const rows_fn rows_functions_##DIM[KERNEL_OPTIMIZER_COUNT] = { \
		ROWS_KINDS(ROWS_ENTRY, DIM) \
	};

ROWS_DIMS(ROWS_TABLE)

#define ROWS_CASE(DIM) \
	case DIM: \
		return rows_functions_##DIM[u->optimizer];

/* NULL: none is compiled apart. */
static rows_fn rows_function(const struct kernel_update *u)
{
	if (u->flags)
		return NULL;
	switch (u->dim) {
	ROWS_DIMS(ROWS_CASE)
	default:
		return NULL;
	}
}

static void update_rows(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			u64 ahead, const u32 *occ, void *scratch)
{
	const update_fn update = update_functions[u->optimizer];
	const u32 slot_count = kernel_optimizers[u->optimizer].slot_count;
	const rows_fn rows = rows_function(u);

	if (rows)
		return rows(u, groups, n, ahead, occ, scratch);
	for (u64 i = 0; i < n; i++) {
		rows_ahead(u, groups, i, n, ahead, u->prefetch, occ, u->dim, slot_count);
		update_group(u, update, &groups[turn_of(i, n)], occ, scratch);
	}
}

static void update_row(const struct kernel_update *u, u64 row, const float *sum)
{
	update_functions[u->optimizer](u, row, sum, 1.0f, GRADIENT_SUM);
}
