/* SPDX-License-Identifier: MIT */
/* The update of a row after its gradient is known. */
#ifndef ENGINE_KERNELS_BODY_UPDATE_H
#define ENGINE_KERNELS_BODY_UPDATE_H

#include "body_gradient.h"
#include "math64.h"
#include "optimizers.h"

/* How the gradient reaches the optimizer. */
enum gradient_form {
	GRADIENT_SUM,	   /* summed already */
	GRADIENT_ONE,	   /* a single occurrence with coefficient 1 */
	GRADIENT_WEIGHTED, /* a single occurrence with a coefficient */
};

INLINE vec vec_gradient(vec x, float coef, const enum gradient_form form)
{
	vec zero = { 0 };

	if (form == GRADIENT_SUM)
		return x;
	return form == GRADIENT_ONE ? zero + x : vec_fma(vec_all(coef), x, zero);
}

INLINE float one_gradient(float x, float coef, const enum gradient_form form)
{
	if (form == GRADIENT_SUM)
		return x;
	return form == GRADIENT_ONE ? 0.0f + x : one_fma(coef, x, 0.0f);
}

INLINE float decay_factor(const struct kernel_update *u)
{
	return u->flags & KERNEL_DECAY_TIMES_LR ? u->decay * u->lr : u->decay;
}

/* Not inlined: it is long, rare, and called once per float. */
static __attribute__((__noinline__)) float any_pow(float x, double power)
{
	return (float)math64_pow(x, power);
}

INLINE float one_pow(float x, double power)
{
	if (power == 0.5)
		return one_sqrt(x);
	return power == -0.5 ? 1.0f / one_sqrt(x) : any_pow(x, power);
}

INLINE vec vec_pow(vec x, double power)
{
	if (power == 0.5)
		return vec_sqrt(x);
	if (power == -0.5)
		return 1.0f / vec_sqrt(x);
	for (u32 i = 0; i < VEC; i++)
		x[i] = any_pow(x[i], power);
	return x;
}

INLINE float one_select(bool m, float yes, float no)
{
	return m ? yes : no;
}

/* 1 or -1; zeros and NaN stay what they are. */
INLINE vec vec_sign(vec x)
{
	vec zero = { 0 };

	return vec_select(x > zero, vec_all(1.0f), vec_select(x < zero, vec_all(-1.0f), x));
}

INLINE float one_sign(float x)
{
	return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

/* Nearer to zero by so much, and no further than to it. */
INLINE vec vec_shrink(vec x, vec by)
{
	vec sign = vec_sign(x);

	return sign * vec_clip(sign * x - by, 0.0f, __builtin_inff());
}

INLINE float one_shrink(float x, float by)
{
	float sign = one_sign(x);

	return sign * one_clip(sign * x - by, 0.0f, __builtin_inff());
}

INLINE float one_all(float x)
{
	return x;
}

#define SPREAD(x) _Generic((w), vec: vec_all, float: one_all)(x)
#define SELECT(m, yes, no) _Generic((no), vec: vec_select, float: one_select)(m, yes, no)
#define SIGN(x) _Generic((x), vec: vec_sign, float: one_sign)(x)
#define SHRINK(x, by) _Generic((x), vec: vec_shrink, float: one_shrink)(x, by)
#define CLIP(x, low, high) _Generic((x), vec: vec_clip, float: one_clip)(x, low, high)
#define SQRT(x) _Generic((x), vec: vec_sqrt, float: one_sqrt)(x)
#define POW(x) _Generic((x), vec: vec_pow, float: one_pow)(x, u->power)
#define FROM_ZERO(x) (x)

/* The gradient as an optimizer takes it, of a vector or of a float. */
#define DEFINE_TAKEN(TYPE) \
	INLINE TYPE TYPE##_taken(const struct kernel_update *u, TYPE g, TYPE w, const bool plain) \
	{ \
		if (!plain && u->flags & KERNEL_GRADIENT_SCALE) \
			g = g * u->gradient_multiplier; \
		if (!plain && u->flags & KERNEL_GRADIENT_CLIP) \
			g = CLIP(g, u->gradient_min, u->gradient_max); \
		if (!plain && u->flags & KERNEL_DECAY_GRADIENT) \
			g = g + u->decay * w; \
		return g; \
	}

DEFINE_TAKEN(vec)
DEFINE_TAKEN(float)

/* One optimizer on one vector or one float, written alike for both. */
#define DEFINE_STEP(KIND, TYPE) \
	INLINE void TYPE##_##KIND(const struct kernel_update *u, TYPE *row, TYPE g, TYPE *s, \
				  const float *r, const bool plain) \
	{ \
		const float lr = u->lr; \
		const float *h = u->hyper, *p = u->prepared; \
		TYPE w = *row; \
		(void)lr, (void)h, (void)p, (void)s, (void)r; \
		g = TYPE##_taken(u, g, w, plain); \
		if (!plain && u->flags & KERNEL_DECAY) \
			w = w - decay_factor(u) * w; \
		KERNEL_##KIND##_STEP; \
		if (!plain && u->flags & KERNEL_WEIGHT_CLIP) \
			w = CLIP(w, u->weight_min, u->weight_max); \
		*row = w; \
	}

#define ONE_MORE(...) +1

/* Slots that are as wide as the row. */
#define WIDE_SLOTS(KIND) \
	(0 KERNEL_##KIND##_SLOTS(ONE_MORE) - KERNEL_OPTIMIZER_IS_ROWWISE(KERNEL_##KIND))

#define IF_SHARED(KIND, shared) (KERNEL_OPTIMIZER_IS_ROWWISE(KERNEL_##KIND) ? (shared) : NULL)

/* Whether elements may have to be mended. Kinds that are tame have code of their own without it. */
#define MAY_MEND(KIND, plain) (!(plain) || !KERNEL_OPTIMIZER_IS_TAME(KERNEL_##KIND))

/*
 * Columns [c, c + n) of row and wide slots @to, @count of them, that are not finite, before they are
 * stored. Return: what vec_check() says of them afterwards.
 */
static __attribute__((__noinline__)) vec mend_part(const struct kernel_update *u,
						   float *const *from, const u32 count,
						   const struct kernel_shared *shared, u64 c, u64 n,
						   const vec *gradient, vec *to)
{
	float copies[2 + KERNEL_MAX_SLOTS][VEC];
	float *gradients = copies[0], *after = copies[1];
	struct kernel_mend m = { .count = n, .shared = shared };
	vec bad = { 0 };

	/*
	 * GCC before 14 takes an array of its own for aligned, and places it elsewhere where the address
	 * sanitizer watches what outlives a function (GCC 110027). It does not see what these point to.
	 */
	__asm__("" : "+r"(gradients), "+r"(after));
	m.gradients = gradients;
	vec_store(gradients, *gradient);
	for (u32 i = 0; i < count; i++) {
		m.row[i] = from[i] + c;
		m.to[i] = after + i * VEC;
		vec_store(m.to[i], to[i]);
	}
	kernel_mend(u, &m);
	for (u32 i = 0; i < count; i++) {
		to[i] = vec_load(m.to[i]);
		bad = vec_check(bad, vec_part(to[i], n));
	}
	return bad;
}

static __attribute__((__noinline__, __unused__)) float mend_one(const struct kernel_update *u,
								float *const *from, const u32 count,
								const struct kernel_shared *shared,
								u64 c, float gradient, float *to)
{
	struct kernel_mend m = { .gradients = &gradient, .count = 1, .shared = shared };
	float bad = 0.0f;

	for (u32 i = 0; i < count; i++) {
		m.row[i] = from[i] + c;
		m.to[i] = &to[i];
	}
	kernel_mend(u, &m);
	for (u32 i = 0; i < count; i++)
		bad += to[i] - to[i];
	return bad;
}

/*
 * Columns [c, c + n), a vector or a part of one. @row: the row, then its wide slots. Elements are
 * mended in a copy, so that the rest need not be in memory. @check: as vec_check() has it.
 */
#define DEFINE_PART(KIND) \
	INLINE void part_##KIND(const struct kernel_update *u, float *const *row, \
				const struct kernel_shared *shared, const float *g, float coef, \
				u64 c, u64 n, const enum gradient_form form, const bool plain, \
				vec *check) \
	{ \
		const u32 count = 1 + WIDE_SLOTS(KIND); \
		vec x[1 + KERNEL_MAX_SLOTS]; \
		vec bad = MAY_MEND(KIND, plain) ? (vec){ 0 } : *check; \
		vec gradient = vec_gradient(vec_get(g + c, n), coef, form); \
		for (u32 i = 0; i < count; i++) \
			x[i] = vec_get(row[i] + c, n); \
		vec_##KIND(u, x, gradient, x + 1, shared->r, plain); \
		for (u32 i = 0; i < count; i++) \
			bad = vec_check(bad, vec_part(x[i], n)); \
		if (MAY_MEND(KIND, plain) && u->mends && __builtin_expect(vec_any_nan(bad), 0)) { \
			vec sum = gradient, to[1 + KERNEL_MAX_SLOTS]; \
			for (u32 i = 0; i < count; i++) \
				to[i] = x[i]; \
			bad = mend_part(u, row, count, IF_SHARED(KIND, shared), c, n, &sum, to); \
			for (u32 i = 0; i < count; i++) \
				x[i] = to[i]; \
		} \
		*check = MAY_MEND(KIND, plain) ? *check + bad : bad; \
		for (u32 i = 1; i < count; i++) \
			vec_put(row[i] + c, x[i], n); \
		vec_put(row[0] + c, x[0], n); \
	}

/* A column alone. */
#define DEFINE_ONE(KIND) \
	INLINE void one_##KIND(const struct kernel_update *u, float *const *row, \
			       const struct kernel_shared *shared, const float *g, float coef, \
			       u64 c, const enum gradient_form form, const bool plain, vec *check) \
	{ \
		const u32 count = 1 + WIDE_SLOTS(KIND); \
		const float gradient = one_gradient(g[c], coef, form); \
		float x[1 + KERNEL_MAX_SLOTS], bad = 0.0f; \
		for (u32 i = 0; i < count; i++) \
			x[i] = row[i][c]; \
		float_##KIND(u, x, gradient, x + 1, shared->r, plain); \
		for (u32 i = 0; i < count; i++) \
			bad += x[i] - x[i]; \
		if (MAY_MEND(KIND, plain) && u->mends && bad != bad) \
			bad = mend_one(u, row, count, IF_SHARED(KIND, shared), c, gradient, x); \
		*check += bad; \
		for (u32 i = 0; i < count; i++) \
			row[i][c] = x[i]; \
	}

#define SUM_LANES 16u /* column c of a row is added to the c % SUM_LANES-th */

/* The sums of the lanes, then the lanes by halves. */
INLINE double sum_lanes(vec_doubles *sums)
{
	double lane[VEC_DOUBLES];

	for (u32 n = SUM_LANES / VEC_DOUBLES / 2; n; n /= 2)
		for (u32 i = 0; i < n; i++)
			sums[i] += sums[i + n];
	__builtin_memcpy(lane, sums, sizeof(lane));
	UNROLL
	for (u32 i = 0; VEC_DOUBLES > 4 && i < 4; i++)
		lane[i] += lane[i + 4];
	UNROLL
	for (u32 i = 0; VEC_DOUBLES > 2 && i < 2; i++)
		lane[i] += lane[i + 2];
	return lane[0] + lane[1];
}

INLINE void add_part(vec_doubles *sums, vec x, u64 c, const bool squares)
{
	const u32 first = c % SUM_LANES / VEC_DOUBLES;

	for (u32 i = 0; i < VEC / VEC_DOUBLES; i++) {
		vec_doubles wide = vec_widen(x, i);

		sums[first + i] += squares ? wide * wide : wide;
	}
}

/* The sum of a row's gradients, as the optimizer takes them, or of their squares. */
INLINE double sum_of_row(const struct kernel_update *u, const float *row, const float *g,
			 float coef, const u64 dim, const enum gradient_form form, const bool plain,
			 const bool squares)
{
	vec_doubles sums[SUM_LANES / VEC_DOUBLES] = { 0 };
	u64 c = 0;

	for (; dim - c >= VEC; c += VEC) {
		vec x = vec_gradient(vec_load(g + c), coef, form);

		add_part(sums, vec_taken(u, x, vec_load(row + c), plain), c, squares);
	}
	if (VEC_PARTS && c < dim) {
		const u64 n = dim - c;
		vec x = vec_gradient(vec_get(g + c, n), coef, form);

		x = vec_taken(u, x, vec_get(row + c, n), plain);
		add_part(sums, vec_part(x, n), c, squares);
		c = dim;
	}
	for (; c < dim; c++) {
		double x = float_taken(u, one_gradient(g[c], coef, form), row[c], plain);
		u32 lane = c % SUM_LANES;

		sums[lane / VEC_DOUBLES][lane % VEC_DOUBLES] += squares ? x * x : x;
	}
	return sum_lanes(sums);
}

/* Shortens a row that is longer than u->max_norm. */
static __attribute__((__noinline__)) void limit_norm(const struct kernel_update *u, u64 number)
{
	float *row = u->table + number * u->stride;
	double norm = root64(sum_of_row(u, row, row, 1.0f, u->dim, GRADIENT_SUM, true, true));
	float factor = (float)(u->max_norm / norm);

	if (!(norm > u->max_norm) || norm > __DBL_MAX__)
		return;
	for (u64 c = 0; c < u->dim; c++)
		row[c] *= factor;
}

#define ROOT(x) one_sqrt(x)
#define ROUND(x) ((float)(x))

/* The last slot of one row, and what its elements share. Nothing is, of most kinds. */
#define DEFINE_SHARED(KIND) \
	INLINE void share_##KIND(const struct kernel_update *u, u64 number, const float *g, \
				 float coef, const u64 dim, const enum gradient_form form, \
				 const bool plain, struct kernel_shared *shared, vec *check) \
	{ \
		const float lr = u->lr, *row = u->table + number * u->stride; \
		const float *h = u->hyper, *p = u->prepared; \
		const bool squares = !(KERNEL_##KIND##_MEAN); \
		const double mean = (squares ? \
					     sum_of_row(u, row, g, coef, dim, form, plain, true) : \
					     sum_of_row(u, row, g, coef, dim, form, plain, \
							false)) / \
				    (double)dim; \
		float slot = u->slots[WIDE_SLOTS(KIND)][number], *r = shared->r; \
		(void)lr, (void)h, (void)p; \
		shared->mean = mean; \
		shared->slot = slot; \
		KERNEL_##KIND##_ROW; \
		u->slots[WIDE_SLOTS(KIND)][number] = slot; \
		*check += slot - slot; \
	}

#define DEFINE_NOTHING_SHARED(KIND) \
	INLINE void share_##KIND(const struct kernel_update *u, u64 number, const float *g, \
				 float coef, const u64 dim, const enum gradient_form form, \
				 const bool plain, struct kernel_shared *shared, vec *check) \
	{ \
		(void)u, (void)number, (void)g, (void)coef, (void)dim, (void)form, (void)plain; \
		(void)shared, (void)check; \
	}

/* All columns of one row. */
#define DEFINE_COLUMNS(KIND) \
	INLINE void columns_##KIND(const struct kernel_update *u, u64 number, const float *g, \
				   float coef, const u64 dim, const enum gradient_form form, \
				   const bool plain, vec *check) \
	{ \
		const u32 slots = WIDE_SLOTS(KIND); \
		const u64 at = number * u->stride; \
		float *row[1 + KERNEL_MAX_SLOTS] = { u->table + at }; \
		struct kernel_shared shared; \
		u64 c = 0; \
		for (u32 i = 0; i < slots; i++) \
			row[1 + i] = u->slots[i] + at; \
		share_##KIND(u, number, g, coef, dim, form, plain, &shared, check); \
		for (; dim - c >= VEC; c += VEC) \
			part_##KIND(u, row, &shared, g, coef, c, VEC, form, plain, check); \
		if (VEC_PARTS && c < dim) \
			return part_##KIND(u, row, &shared, g, coef, c, dim - c, form, plain, \
					   check); \
		for (; c < dim; c++) \
			one_##KIND(u, row, &shared, g, coef, c, form, plain, check); \
	}

/* The common case, no flags, is compiled apart. */
#define DEFINE_UPDATE(KIND) \
	DEFINE_STEP(KIND, vec) \
	DEFINE_STEP(KIND, float) \
	DEFINE_PART(KIND) \
	DEFINE_ONE(KIND) \
	DEFINE_COLUMNS(KIND) \
	static void update_##KIND(const struct kernel_update *u, u64 row, const float *g, \
				  float coef, enum gradient_form form, vec *check) \
	{ \
		bool plain = !(u->flags & \
			       ~(KERNEL_EACH_OCCURRENCE | KERNEL_HELD | KERNEL_SUMS)) && \
			     !(KERNEL_OPTIMIZER_IS_TAME(KERNEL_##KIND) && u->mends); \
		vec seen = { 0 }; \
		if (form == GRADIENT_SUM && plain) \
			columns_##KIND(u, row, g, coef, u->dim, GRADIENT_SUM, true, &seen); \
		else if (form == GRADIENT_ONE && plain) \
			columns_##KIND(u, row, g, coef, u->dim, GRADIENT_ONE, true, &seen); \
		else if (plain) \
			columns_##KIND(u, row, g, coef, u->dim, GRADIENT_WEIGHTED, true, &seen); \
		else if (form == GRADIENT_SUM) \
			columns_##KIND(u, row, g, coef, u->dim, GRADIENT_SUM, false, &seen); \
		else \
			columns_##KIND(u, row, g, coef, u->dim, GRADIENT_WEIGHTED, false, &seen); \
		if (u->flags & KERNEL_MAX_NORM) \
			limit_norm(u, row); \
		*check += seen; \
	}

KERNEL_ELEMENTWISE(DEFINE_NOTHING_SHARED)
KERNEL_ROWWISE(DEFINE_SHARED)
KERNEL_OPTIMIZERS(DEFINE_UPDATE)

typedef void (*update_fn)(const struct kernel_update *u, u64 row, const float *g, float coef,
			  enum gradient_form form, vec *check);

#define UPDATE_ENTRY(KIND) [KERNEL_##KIND] = update_##KIND,

static const update_fn update_functions[KERNEL_OPTIMIZER_COUNT] = { KERNEL_OPTIMIZERS(
	UPDATE_ENTRY) };

/* A single occurrence goes from its gradient to the optimizer in registers. */
INLINE void update_occurrence(const struct kernel_update *u, update_fn update, u64 row, u32 occ,
			      vec *check)
{
	const struct kernel_segment *s = kernel_find_segment(u->segments, u->segment_count, occ);
	const float *coef;
	const float *g = occurrence_gradient(s, occ, &coef);

	update(u, row, g, *coef, s->coef ? GRADIENT_WEIGHTED : GRADIENT_ONE, check);
}

/* An occurrence that takes a part of its gradient, or is a sum: what it takes is put together first. */
INLINE void update_apart(const struct kernel_update *u, update_fn update, u64 row, const u32 *occ,
			 float *sum, void *scratch, vec *check)
{
	KERNEL(run_gradient)(u, sum, occ, 1, scratch);
	update(u, row, sum, 1.0f, GRADIENT_SUM, check);
}

INLINE void update_group(const struct kernel_update *u, update_fn update,
			 const struct kernel_group *group, const u32 *occ, void *scratch,
			 vec *check)
{
	float *sum = kernel_scratch_sum(scratch, u->dim);

	if (group->count == 1 || u->flags & KERNEL_EACH_OCCURRENCE) {
		for (u64 i = 0; i < group->count; i++) {
			const u32 *at = &occ[group->first + i];

			if (u->flags & (KERNEL_HELD | KERNEL_SUMS))
				update_apart(u, update, group->row, at, sum, scratch, check);
			else
				update_occurrence(u, update, group->row, *at, check);
		}
		return;
	}
	KERNEL(row_gradient)(u, sum, occ + group->first, group->count, scratch);
	if (u->flags & KERNEL_BY_FREQUENCY)
		kernel_divide(sum, u->dim, group->count);
	update(u, group->row, sum, 1.0f, GRADIENT_SUM, check);
}

/* Where the gradient of the group's first occurrence is to be found. */
INLINE void update_far_ahead(const struct kernel_update *u, const struct kernel_group *group,
			     const u32 *occ)
{
	u32 first = occ[group->first];

	prefetch_occurrence(kernel_find_segment(u->segments, u->segment_count, first), first);
}

/* The slots of a kind: those that are as wide as a row, and whether one of one number follows. */
struct slots_kept {
	u32 wide;
	bool one_number;
};

#define SLOTS_KEPT(kind, slot_count) \
	((struct slots_kept){ (slot_count) - KERNEL_OPTIMIZER_IS_ROWWISE(kind), \
			      KERNEL_OPTIMIZER_IS_ROWWISE(kind) })

INLINE void row_ahead(const struct kernel_update *u, u64 row, const u32 dim,
		      const struct slots_kept slots)
{
	const u64 at = row * u->stride;

	prefetch_floats(u->table + at, dim);
	for (u32 i = 0; i < slots.wide; i++)
		prefetch_floats(u->slots[i] + at, dim);
	if (slots.one_number)
		prefetch_floats(u->slots[slots.wide] + row, 1);
}

/* Fetches the gradient of a group's first occurrence. @only: the segment of all, or NULL. */
INLINE void gradient_ahead(const struct kernel_update *u, const struct kernel_group *group,
			   const u32 *occ, const struct kernel_segment *only, const u32 dim)
{
	const u32 first = occ[group->first];
	const struct kernel_segment *s = only ? only :
						kernel_find_segment(u->segments, u->segment_count,
								    first);
	const float *coef;

	if (s->far)
		prefetch_floats(occurrence_gradient(s, first, &coef), dim);
}

#endif
