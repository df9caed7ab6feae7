/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_KERNELS_SCRATCH_H
#define ENGINE_KERNELS_SCRATCH_H

#include "kernels.h"

/* One run's addresses; three rows of dim floats follow: sum, replica's total, run. */
struct kernel_scratch {
	const float *gradient[KERNEL_RUN];
	float coef[KERNEL_RUN];
};

static inline u64 kernel_scratch_stride(u32 dim)
{
	return ((u64)dim + 15) / 16 * 16;
}

static inline float *kernel_scratch_total(void *memory)
{
	return (float *)((struct kernel_scratch *)memory + 1);
}

static inline float *kernel_scratch_run(void *memory, u32 dim)
{
	return kernel_scratch_total(memory) + kernel_scratch_stride(dim);
}

static inline float *kernel_scratch_sum(void *memory, u32 dim)
{
	return kernel_scratch_run(memory, dim) + kernel_scratch_stride(dim);
}

#endif
