/* SPDX-License-Identifier: MIT */
/* Single-precision numbers as their bits, for code that must do without floating point. */
#ifndef EMBENG_ENGINE_F32_H
#define EMBENG_ENGINE_F32_H

#include "types.h"

#define F32_SIGN 0x80000000u
#define F32_ONE 0x3f800000u
#define F32_GREATEST 0x7f7fffffu /* the greatest that is finite */
#define F32_INFINITY 0x7f800000u

static inline bool f32_finite(u32 bits)
{
	return (bits & ~F32_SIGN) <= F32_GREATEST;
}

static inline bool f32_nan(u32 bits)
{
	return (bits & ~F32_SIGN) > F32_INFINITY;
}

/* Order of floats as order of integers; both zeros are one. */
static inline s64 f32_order(u32 bits)
{
	s64 magnitude = bits & ~F32_SIGN;

	return bits & F32_SIGN ? -magnitude : magnitude;
}

static inline bool f32_row_finite(const u32 *row, u64 dim)
{
	bool finite = true;

	for (u64 i = 0; i < dim; i++)
		finite &= f32_finite(row[i]);
	return finite;
}

#endif
