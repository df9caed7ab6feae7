/* SPDX-License-Identifier: MIT */
/* Floats cross to the engine as their bits. */
#ifndef EMBENG_BITS_H
#define EMBENG_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits(float value)
{
	uint32_t out;

	memcpy(&out, &value, sizeof(out));
	return out;
}

static inline float float_of(uint32_t value)
{
	float out;

	memcpy(&out, &value, sizeof(out));
	return out;
}

#endif
