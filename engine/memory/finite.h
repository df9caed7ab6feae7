/* SPDX-License-Identifier: MIT */
/* Looks for numbers that are not finite by their bits: without floating point. */
#ifndef ENGINE_MEMORY_FINITE_H
#define ENGINE_MEMORY_FINITE_H

#include "../types.h"

#define F32_EXPONENT 0x7f800000u /* all ones: not finite */

static inline bool is_row_finite(const u32 *row, u64 dim)
{
	bool finite = true;

	for (u64 i = 0; i < dim; i++)
		finite &= (row[i] & F32_EXPONENT) != F32_EXPONENT;
	return finite;
}

#endif
