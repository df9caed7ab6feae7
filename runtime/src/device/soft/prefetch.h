/* SPDX-License-Identifier: MIT */
/* How far ahead this machine's memory wants rows to be fetched. */
#ifndef EMBENG_PREFETCH_H
#define EMBENG_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_ops;

/*
 * Tables of so many floats, 4 MiB, are worth a measurement: filling them takes a part of what
 * measuring does, and smaller ones are mostly in the second cache.
 */
#define PREFETCH_WORTH_FLOATS ((uint64_t)1 << 20)

/**
 * struct prefetch - how rows are fetched ahead
 * @rows: so many of them; 0: the engine's own choice
 * @fetch: enum kernel_fetch
 */
struct prefetch {
	uint32_t rows;
	uint32_t fetch;
};

/* Where rows go, as a device's name has it behind their number: "" or ":l1", ...; else NULL. */
const char *prefetch_cache(uint32_t fetch);

/* Whether fetching in bursts is known to vary the least on this processor, whose vendor tells. */
bool prefetch_bursts_steady(void);

/*
 * prefetch_measured() - how lookups are fastest here
 * @kernels: whose lookups
 * @floats: of all tables
 * @steady: prefetch_bursts_steady(): beyond a cache bursts are taken unless another way is faster
 *	by a fifth; else the fastest is taken
 *
 * The first call of a process for tables of PREFETCH_CACHED_BYTES and more reads rows at random out
 * of 256 MiB, which it gives back, for some 90 ms and as long as the system takes to find that
 * memory; the first for smaller ones out of 24 MiB, for some 20. The others give what it found.
 * Return: that, or 0 rows where there was no memory to measure with.
 */
struct prefetch prefetch_measured(const struct kernel_ops *kernels, uint64_t floats, bool steady);

#endif
