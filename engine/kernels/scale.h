/* SPDX-License-Identifier: MIT */
/*
 * Scale of a bag from its weights, in f64 and in order: the order is part of the result.
 * For bags that lie in memory, and for those whose weights come one by one.
 */
#ifndef ENGINE_KERNELS_SCALE_H
#define ENGINE_KERNELS_SCALE_H

#include "kernels.h"
#include "root.h"

/* Adds a weight to the denominator (mean) or to its square (sqrtn). */
INLINE double scale_add(u32 combiner, double sum, float weight)
{
	return sum + (combiner == KERNEL_MEAN ? weight : (double)weight * weight);
}

INLINE float scale_of(u32 combiner, double sum)
{
	double denominator = combiner == KERNEL_SQRTN ? root64(sum) : sum;

	return denominator == 0.0 ? 0.0f : (float)(1.0 / denominator);
}

#endif
