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

/*
 * What a call of one of these has: @only is where all of its occurrences are, which weigh 1 and are
 * numbered as their gradients are; NULL: not known. Then @far occurrences ahead of each its gradient
 * is fetched, up to @end of them.
 */
struct rows_call {
	const struct kernel_update *u;
	const struct kernel_segment *only;
	const u32 *occ;
	u64 end, far;
	void *scratch;
};

INLINE const struct kernel_segment *rows_segment(const struct rows_call *c, u32 occ)
{
	return c->only ? c->only :
			 kernel_find_segment(c->u->segments, c->u->segment_count, occ);
}

/* Columns of what occurrence @k sums @far later. */
INLINE void rows_far(const struct rows_call *c, u64 k, const u32 column, const u32 floats)
{
	const float *coef;

	if (c->only && c->far && k + c->far < c->end)
		prefetch_floats(occurrence_gradient(c->only, c->occ[k + c->far], &coef) + column,
				floats);
}

/* As run_sum(), of occurrences that are all of one segment: their addresses need no list. */
INLINE void rows_add(const struct rows_call *c, const struct kernel_segment *s,
		     const struct kernel_group *group, float *sum, const u32 column,
		     const u32 count, const bool weighted)
{
	vec acc[8] = { { 0 } };

	for (u64 k = group->first; k < (u64)group->first + group->count; k++) {
		const float *coef, *g = occurrence_gradient(s, c->occ[k], &coef) + column;

		rows_far(c, k, column, count * VEC);
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

INLINE void rows_sum(const struct rows_call *call, const struct kernel_update *u,
		     const struct kernel_group *group, float *sum, const u32 dim)
{
	const u32 *occ = call->occ + group->first;
	const struct kernel_segment *s = rows_segment(call, occ[0]);

	if (group->count > KERNEL_RUN || (!call->only && occ[group->count - 1] >= s->end))
		return row_gradient(u, sum, occ, group->count, call->scratch);
	for (u32 c = 0; c < dim; c += 8 * VEC) {
		const u32 count = dim < 8 * VEC ? dim / VEC : 8;

		if (s->coef)
			rows_add(call, s, group, sum, c, count, true);
		else
			rows_add(call, s, group, sum, c, count, false);
	}
}

/* Whether all occurrences are of one segment, weigh 1 and are numbered by their gradients. */
INLINE bool rows_are_plain(const struct kernel_update *u)
{
	return u->segment_count == 1 && !u->segments->coef && !u->segments->grad_row;
}

/* What compilers have to know of the one segment for its occurrences to be found without a look. */
INLINE struct kernel_segment rows_plain(const struct kernel_update *u)
{
	return (struct kernel_segment){ .first = u->segments->first,
					.gradients = u->segments->gradients,
					.stride = u->segments->stride };
}

/* Gradients of rows that are taken in leaps by blocks have their turn a block later. */
INLINE u64 rows_far_ahead(const struct kernel_update *u, const bool leap)
{
	if (!u->segments->far || !u->prefetch)
		return 0;
	return leap ? TURNS_BLOCK : u->prefetch;
}

#define ROWS_COLUMNS(KIND, DIM) \
	INLINE void rows_one_##KIND##_##DIM(const struct rows_call *c, u64 row, u64 k) \
	{ \
		const struct kernel_segment *s = rows_segment(c, c->occ[k]); \
		const float *coef, *g = occurrence_gradient(s, c->occ[k], &coef); \
		rows_far(c, k, 0, DIM); \
		if (s->coef) \
			columns_##KIND(c->u, row, g, *coef, DIM, GRADIENT_WEIGHTED, true); \
		else \
			columns_##KIND(c->u, row, g, 1.0f, DIM, GRADIENT_ONE, true); \
	} \
	INLINE void rows_of_##KIND##_##DIM(const struct rows_call *c, \
					   const struct kernel_update *u, \
					   const struct kernel_group *group) \
	{ \
		float *sum = kernel_scratch_sum(c->scratch, DIM); \
		if (group->count == 1) \
			return rows_one_##KIND##_##DIM(c, group->row, group->first); \
		rows_sum(c, u, group, sum, DIM); \
		columns_##KIND(c->u, group->row, sum, 1.0f, DIM, GRADIENT_SUM, true); \
	} \
	static void plain_##KIND##_##DIM(const struct kernel_update *u, \
					 const struct kernel_group *groups, u64 n, u64 ahead, \
					 const u32 *occ, void *scratch) \
	{ \
		const struct kernel_update copy = *u; \
		const struct kernel_segment only = rows_plain(u); \
		const bool leap = turns_leap(u, groups, n); \
		const u64 near = u->prefetch, end = n + ahead; \
		const struct rows_call c = { .u = &copy, .only = &only, .occ = occ, \
					     .end = groups[end - 1].first + \
						    (u64)groups[end - 1].count, \
					     .far = rows_far_ahead(u, leap), \
					     .scratch = scratch }; \
		for (u64 i = 0; i < n; i++) { \
			if (near && end - i > near) \
				row_ahead(&copy, \
					  groups[turn_ahead(i + near, n, ahead, leap)].row, DIM, \
					  0 KERNEL_##KIND##_SLOTS(ONE_MORE)); \
			rows_of_##KIND##_##DIM(&c, u, &groups[turn_of(i, n, leap)]); \
		} \
	} \
	static void rows_##KIND##_##DIM(const struct kernel_update *u, \
					const struct kernel_group *groups, u64 n, u64 ahead, \
					const u32 *occ, void *scratch) \
	{ \
		const struct rows_call c = { .u = u, .occ = occ, .scratch = scratch }; \
		const bool leap = turns_leap(u, groups, n); \
		for (u64 i = 0; i < n; i++) { \
			rows_ahead(u, groups, i, n, ahead, u->prefetch, leap, occ, DIM, \
				   0 KERNEL_##KIND##_SLOTS(ONE_MORE)); \
			rows_of_##KIND##_##DIM(&c, u, &groups[turn_of(i, n, leap)]); \
		} \
	}
#define ROWS_OF_DIM(DIM) ROWS_KINDS(ROWS_COLUMNS, DIM)

ROWS_DIMS(ROWS_OF_DIM)

typedef void (*rows_fn)(const struct kernel_update *u, const struct kernel_group *groups, u64 n,
			u64 ahead, const u32 *occ, void *scratch);

#define ROWS_ENTRY(KIND, DIM) [KERNEL_##KIND] = { rows_##KIND##_##DIM, plain_##KIND##_##DIM },
#define ROWS_TABLE(DIM) \
	static const rows_fn rows_functions_##DIM[KERNEL_OPTIMIZER_COUNT][2] = { \
		ROWS_KINDS(ROWS_ENTRY, DIM) \
	};

ROWS_DIMS(ROWS_TABLE)

#define ROWS_CASE(DIM) \
	case DIM: \
		return rows_functions_##DIM[u->optimizer][rows_are_plain(u)];

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
	const rows_fn rows = n ? rows_function(u) : NULL;
	const bool leap = turns_leap(u, groups, n);

	if (rows)
		return rows(u, groups, n, ahead, occ, scratch);
	for (u64 i = 0; i < n; i++) {
		rows_ahead(u, groups, i, n, ahead, u->prefetch, leap, occ, u->dim, slot_count);
		update_group(u, update, &groups[turn_of(i, n, leap)], occ, scratch);
	}
}

static void update_row(const struct kernel_update *u, u64 row, const float *sum)
{
	update_functions[u->optimizer](u, row, sum, 1.0f, GRADIENT_SUM);
}
