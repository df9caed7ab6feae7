/* SPDX-License-Identifier: MIT */
/* How far ahead this machine's memory wants rows to be fetched. */
#ifndef EMBENG_PREFETCH_H
#define EMBENG_PREFETCH_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_ops;

/*
 * Tables of so many floats are worth a measurement: 32 MiB, up to which third caches hold most of
 * the rows and the ways differ by little. Filling as many takes a part of what measuring does.
 */
#define PREFETCH_WORTH_FLOATS ((uint64_t)8 << 20)

/*
 * What is measured with is larger: out of 64 MiB half of the rows come from a third cache of 32,
 * and the choice from noise.
 */
#define PREFETCH_TABLE_FLOATS ((uint64_t)64 << 20)

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

/*
 * prefetch_measured() - how lookups are fastest here
 *
 * The first call of a process reads rows at random out of 256 MiB, which it gives back, for some
 * 90 ms and as long as the system takes to find that memory; the others give what it found.
 * Return: that, or 0 rows where there was no memory to measure with.
 */
struct prefetch prefetch_measured(const struct kernel_ops *kernels);

#endif
