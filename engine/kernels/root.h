/* SPDX-License-Identifier: MIT */
/*
 * The processor's own square roots. __builtin_sqrt() alone would call libm for negative
 * operands unless -fno-math-errno is given.
 */
#ifndef ENGINE_KERNELS_ROOT_H
#define ENGINE_KERNELS_ROOT_H

#include "../types.h"

#ifdef __SSE2__
typedef float root_floats __attribute__((vector_size(16)));
typedef double root_doubles __attribute__((vector_size(16)));
#endif

INLINE float root32(float x)
{
#ifdef __SSE2__
	return __builtin_ia32_sqrtps((root_floats){ x })[0];
#elif defined(__aarch64__)
	float root;

	__asm__("fsqrt %s0, %s1" : "=w"(root) : "w"(x));
	return root;
#else
	return __builtin_sqrtf(x);
#endif
}

INLINE double root64(double x)
{
#ifdef __SSE2__
	return __builtin_ia32_sqrtpd((root_doubles){ x })[0];
#elif defined(__aarch64__)
	double root;

	__asm__("fsqrt %d0, %d1" : "=w"(root) : "w"(x));
	return root;
#else
	return __builtin_sqrt(x);
#endif
}

#endif
