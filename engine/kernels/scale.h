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

/* Makes the scale of the sum that scale_add() gives; see scale_overflows(). */
INLINE float scale_of(u32 combiner, double sum)
{
	double denominator = combiner == KERNEL_SQRTN ? root64(sum) : sum;

	return denominator == 0.0 ? 0.0f : (float)(1.0 / denominator);
}

/* Whether the weights are so small that 1 / D is too large for f32; then they are stretched. */
INLINE bool scale_overflows(float scale)
{
	return scale > __FLT_MAX__ || scale < -__FLT_MAX__;
}

/**
 * kernel_stretch() - the number by which the weights of a bag are multiplied first
 * @combiner: KERNEL_MEAN or KERNEL_SQRTN
 * @sum: the sum of scale_add(); its scale overflows
 * @largest: the largest weight, without sign
 *
 * Neither the mean nor sqrtn changes when all weights are multiplied by the same number.
 *
 * Return: a power of two that makes both the largest weight and 1 / D numbers of f32, where one
 * can.
 */
double kernel_stretch(u32 combiner, double sum, float largest);

/**
 * kernel_stretched_scale() - the scale of a bag whose weights were stretched
 * @combiner: KERNEL_MEAN or KERNEL_SQRTN
 * @sum: as it was before
 * @stretch: the number of kernel_stretch()
 *
 * Return: the scale, or the largest number of its sign where no number of f32 is as large.
 */
float kernel_stretched_scale(u32 combiner, double sum, double stretch);

/**
 * kernel_stretch_bag() - the stretched weights of a bag, and what @work wants of it
 * @work: its weights are given
 * @sample: number of the bag
 */
void kernel_stretch_bag(const struct kernel_scale_work *work, u64 sample);

#endif
