/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_KERNELS_FILL_H
#define ENGINE_KERNELS_FILL_H

#include "../types.h"

enum kernel_fill_kind {
	KERNEL_FILL_CONSTANT = 0,
	KERNEL_FILL_UNIFORM = 1,
	KERNEL_FILL_TRUNCATED_NORMAL = 2,
};

/**
 * struct kernel_fill - initial values for rows
 * @kind: enum kernel_fill_kind
 * @slot: 0 for parameters, 1 + i for slot i: separates their random streams
 * @seed: key of the generator
 * @dim: floats of a row
 * @a: the constant, the lower limit (included), or the mean
 * @b: unused, the upper limit (excluded), or the standard deviation; values lie within
 *	two of them
 * @out: row i is written at out + i * stride
 * @stride: floats
 * @first_row: logical row number of i = 0
 * @row_step: logical rows from i to i + 1; 1 when rows are contiguous
 * @first_column: logical column of a row's first float
 *
 * A value depends on seed, slot, logical row and logical column alone.
 */
struct kernel_fill {
	u32 kind;
	u32 slot;
	u64 seed;
	u32 dim;
	float a;
	float b;
	float *out;
	u64 stride;
	u64 first_row;
	u64 row_step;
	u32 first_column;
};

/**
 * kernel_fill_rows() - fill rows [first, last)
 * @f: the values to fill with
 * @first: first index i
 * @last: one past the last index
 */
void kernel_fill_rows(const struct kernel_fill *f, u64 first, u64 last);

#endif
