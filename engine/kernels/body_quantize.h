/* SPDX-License-Identifier: MIT */
/* Simulated quantization, in f32 and without contraction. */
#ifndef ENGINE_KERNELS_BODY_QUANTIZE_H
#define ENGINE_KERNELS_BODY_QUANTIZE_H

#include "body.h"

#define FLOOR_WHOLE 0x1p23f /* floats from here on have no fraction */

/* For numbers from 0, or NaN: to the nearest by an addition, then down where that rose. */
INLINE vec vec_floor(vec x)
{
	vec near = (x + vec_all(FLOOR_WHOLE)) - vec_all(FLOOR_WHOLE);

	near = vec_select(near > x, near - vec_all(1.0f), near);
	return vec_select(x < vec_all(FLOOR_WHOLE), near, x);
}

INLINE float one_floor(float x)
{
	float near = (x + FLOOR_WHOLE) - FLOOR_WHOLE;

	near = near > x ? near - 1.0f : near;
	return x < FLOOR_WHOLE ? near : x;
}

/*
 * Levels of a range that f32 does not hold lie beside it by rounding, so they are clipped. An
 * element is clipped before it is multiplied, too: it may be larger than the range. Not inlined: it
 * is rare, and would double the code of lookups.
 */
static __attribute__((__noinline__, __unused__)) vec
vec_quantize_far(vec x, const struct kernel_quantization *q)
{
	const float back = 1.0f / q->factor;
	vec lower = vec_all(q->lower), step = vec_all(q->step);

	x = vec_clip(x, q->lower * back, q->upper * back) * q->factor;
	x = lower + step * vec_floor((x - lower) / step + vec_all(0.5f));
	return vec_clip(x, q->lower, q->upper) * back;
}

INLINE vec vec_quantize(vec x, const struct kernel_quantization *q)
{
	vec lower = vec_all(q->lower), step = vec_all(q->step);

	if (q->factor != 1.0f)
		return vec_quantize_far(x, q);
	x = vec_clip(x, q->lower, q->upper);
	return lower + step * vec_floor((x - lower) / step + vec_all(0.5f));
}

static __attribute__((__noinline__, __unused__)) float one_quantize_far(
	float x, const struct kernel_quantization *q)
{
	const float back = 1.0f / q->factor;

	x = one_clip(x, q->lower * back, q->upper * back) * q->factor;
	x = q->lower + q->step * one_floor((x - q->lower) / q->step + 0.5f);
	return one_clip(x, q->lower, q->upper) * back;
}

INLINE float one_quantize(float x, const struct kernel_quantization *q)
{
	if (q->factor != 1.0f)
		return one_quantize_far(x, q);
	x = one_clip(x, q->lower, q->upper);
	return q->lower + q->step * one_floor((x - q->lower) / q->step + 0.5f);
}

#endif
