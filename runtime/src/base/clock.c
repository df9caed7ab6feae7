// SPDX-License-Identifier: MIT
/*
 * Reads the clock that all deadlines are given in, CLOCK_MONOTONIC in nanoseconds.
 * It has no state, and any thread may read it.
 */
#include "clock.h"

#include <time.h>

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
