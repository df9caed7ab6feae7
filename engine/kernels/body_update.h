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

/* One optimizer on one vector or one float, written alike for both. */
#define DEFINE_STEP(KIND, TYPE) \
	INLINE void TYPE##_##KIND(const struct kernel_update *u, TYPE *row, TYPE g, TYPE *s, \
				  const bool plain) \
	{ \
		const float lr = u->lr; \
		const float *h = u->hyper, *p = u->prepared; \
		TYPE w = *row; \
		(void)lr, (void)h, (void)p, (void)s; \
		if (!plain && u->flags & KERNEL_GRADIENT_SCALE) \
			g = g * u->gradient_multiplier; \
		if (!plain && u->flags & KERNEL_GRADIENT_CLIP) \
			g = CLIP(g, u->gradient_min, u->gradient_max); \
		if (!plain && u->flags & KERNEL_DECAY) \
			w = w - decay_factor(u) * w; \
		KERNEL_##KIND##_STEP; \
		if (!plain && u->flags & KERNEL_WEIGHT_CLIP) \
			w = CLIP(w, u->weight_min, u->weight_max); \
		*row = w; \
	}

#define ONE_MORE(...) +1

/* Whether elements may have to be mended. Kinds that are tame have code of their own without it. */
#define MAY_MEND(KIND, plain) (!(plain) || !KERNEL_OPTIMIZER_IS_TAME(KERNEL_##KIND))

/*
 * Columns [c, c + n) of row and slots @to that are not finite, before they are stored. Return: what
 * vec_check() says of them afterwards.
 */
static __attribute__((__noinline__)) vec mend_part(const struct kernel_update *u,
						   float *const *from, u64 c, u64 n,
						   const vec *gradient, vec *to)
{
	const u32 count = 1 + kernel_optimizers[u->optimizer].slot_count;
	float after[1 + KERNEL_MAX_SLOTS][VEC], gradients[VEC];
	struct kernel_mend m = { .gradients = gradients, .count = n };
	vec bad = { 0 };

	vec_store(gradients, *gradient);
	for (u32 i = 0; i < count; i++) {
		vec_store(after[i], to[i]);
		m.row[i] = from[i] + c;
		m.to[i] = after[i];
	}
	kernel_mend(u, &m);
	for (u32 i = 0; i < count; i++) {
		to[i] = vec_load(after[i]);
		bad = vec_check(bad, vec_part(to[i], n));
	}
	return bad;
}

static __attribute__((__noinline__, __unused__)) float mend_one(const struct kernel_update *u,
								float *const *from, u64 c,
								float gradient, float *to)
{
	const u32 count = 1 + kernel_optimizers[u->optimizer].slot_count;
	struct kernel_mend m = { .gradients = &gradient, .count = 1 };
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
 * Columns [c, c + n), a vector or a part of one. @row: the row, then its slots. Elements are
 * mended in a copy, so that the rest need not be in memory. @check: as vec_check() has it.
 */
#define DEFINE_PART(KIND) \
	INLINE void part_##KIND(const struct kernel_update *u, float *const *row, const float *g, \
				float coef, u64 c, u64 n, const enum gradient_form form, \
				const bool plain, vec *check) \
	{ \
		const u32 count = 1 KERNEL_##KIND##_SLOTS(ONE_MORE); \
		vec x[1 + KERNEL_MAX_SLOTS]; \
		vec bad = MAY_MEND(KIND, plain) ? (vec){ 0 } : *check; \
		vec gradient = vec_gradient(vec_get(g + c, n), coef, form); \
		for (u32 i = 0; i < count; i++) \
			x[i] = vec_get(row[i] + c, n); \
		vec_##KIND(u, x, gradient, x + 1, plain); \
		for (u32 i = 0; i < count; i++) \
			bad = vec_check(bad, vec_part(x[i], n)); \
		if (MAY_MEND(KIND, plain) && u->mends && __builtin_expect(vec_any_nan(bad), 0)) { \
			vec sum = gradient, to[1 + KERNEL_MAX_SLOTS]; \
			for (u32 i = 0; i < count; i++) \
				to[i] = x[i]; \
			bad = mend_part(u, row, c, n, &sum, to); \
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
	INLINE void one_##KIND(const struct kernel_update *u, float *const *row, const float *g, \
			       float coef, u64 c, const enum gradient_form form, const bool plain, \
			       vec *check) \
	{ \
		const u32 count = 1 KERNEL_##KIND##_SLOTS(ONE_MORE); \
		const float gradient = one_gradient(g[c], coef, form); \
		float x[1 + KERNEL_MAX_SLOTS], bad = 0.0f; \
		for (u32 i = 0; i < count; i++) \
			x[i] = row[i][c]; \
		float_##KIND(u, x, gradient, x + 1, plain); \
		for (u32 i = 0; i < count; i++) \
			bad += x[i] - x[i]; \
		if (MAY_MEND(KIND, plain) && u->mends && bad != bad) \
			bad = mend_one(u, row, c, gradient, x); \
		*check += bad; \
		for (u32 i = 0; i < count; i++) \
			row[i][c] = x[i]; \
	}

/* All columns of one row. */
#define DEFINE_COLUMNS(KIND) \
	INLINE void columns_##KIND(const struct kernel_update *u, u64 number, const float *g, \
				   float coef, const u64 dim, const enum gradient_form form, \
				   const bool plain, vec *check) \
	{ \
		const u32 slots = 0 KERNEL_##KIND##_SLOTS(ONE_MORE); \
		const u64 at = number * u->stride; \
		float *row[1 + KERNEL_MAX_SLOTS] = { u->table + at }; \
		u64 c = 0; \
		for (u32 i = 0; i < slots; i++) \
			row[1 + i] = u->slots[i] + at; \
		for (; dim - c >= VEC; c += VEC) \
			part_##KIND(u, row, g, coef, c, VEC, form, plain, check); \
		if (VEC_PARTS && c < dim) \
			return part_##KIND(u, row, g, coef, c, dim - c, form, plain, check); \
		for (; c < dim; c++) \
			one_##KIND(u, row, g, coef, c, form, plain, check); \
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
		bool plain = !(u->flags & ~KERNEL_EACH_OCCURRENCE) && \
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
		*check += seen; \
	}

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

INLINE void update_group(const struct kernel_update *u, update_fn update,
			 const struct kernel_group *group, const u32 *occ, void *scratch,
			 vec *check)
{
	float *sum = kernel_scratch_sum(scratch, u->dim);

	if (group->count == 1 || u->flags & KERNEL_EACH_OCCURRENCE) {
		for (u64 i = 0; i < group->count; i++)
			update_occurrence(u, update, group->row, occ[group->first + i], check);
		return;
	}
	KERNEL(row_gradient)(u, sum, occ + group->first, group->count, scratch);
	update(u, group->row, sum, 1.0f, GRADIENT_SUM, check);
}

/* Where the gradient of the group's first occurrence is to be found. */
INLINE void update_far_ahead(const struct kernel_update *u, const struct kernel_group *group,
			     const u32 *occ)
{
	u32 first = occ[group->first];

	prefetch_occurrence(kernel_find_segment(u->segments, u->segment_count, first), first);
}

INLINE void row_ahead(const struct kernel_update *u, u64 row, const u32 dim, const u32 slot_count)
{
	const u64 at = row * u->stride;

	prefetch_floats(u->table + at, dim);
	for (u32 i = 0; i < slot_count; i++)
		prefetch_floats(u->slots[i] + at, dim);
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
