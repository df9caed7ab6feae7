/* SPDX-License-Identifier: MIT */
/* Random operands and bit comparisons for the kernel tests. */
#ifndef TEST_KERNELS_H
#define TEST_KERNELS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/types.h"

static u64 random_state;

/* EMBENG_TEST_SEED repeats a run. */
static inline void random_start(void)
{
	const char *text = getenv("EMBENG_TEST_SEED");

	random_state = text ? strtoull(text, NULL, 0) : 0x9e3779b97f4a7c15;
	printf("# seed %#llx\n", (unsigned long long)random_state);
}

static inline u64 random_u64(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline u64 random_below(u64 limit)
{
	return random_u64() % limit;
}

static inline float float_of(u32 bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static inline u32 bits_of(float x)
{
	u32 bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline bool same_float(float a, float b)
{
	return bits_of(a) == bits_of(b) || (a != a && b != b);
}

static inline float random_unit(void)
{
	return (float)((double)(s64)random_u64() * 0x1p-63);
}

/* Mostly plain numbers; one in 64 of a class that arithmetic treats apart. */
static inline float random_value(void)
{
	static const u32 special[] = {0x80000000, 0x00000000, 0x00000001, 0x807fffff,
				      0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff};

	if (random_below(64) == 0)
		return float_of(special[random_below(8)]);
	return random_unit();
}

static inline float *random_values(u64 count)
{
	float *values = malloc((count ? count : 1) * sizeof(*values));

	for (u64 i = 0; i < count; i++)
		values[i] = random_value();
	return values;
}

#endif
