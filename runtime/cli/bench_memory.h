/* SPDX-License-Identifier: MIT */
/* Loops over memory, each for the widest vectors that the processor has. */
#ifndef CLI_BENCH_MEMORY_H
#define CLI_BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bags that a gather adds up; rows that are fetched ahead. */
#define MEMORY_POOL 20
#define MEMORY_AHEAD 64

/**
 * struct memory_loops - of one kind of vectors
 * @gather: adds the rows [@count] of @index up, MEMORY_POOL to one, to @out; rows are fetched
 *	into the second cache
 * @gather_near: the same, into the first
 * @rmw: adds to them
 * @stream: reads @bytes, a multiple of 4096; returns their sum, so that they are read
 *
 * Rows are multiples of 64 bytes; @index has MEMORY_AHEAD more than @count, of which @ahead
 * are fetched.
 */
struct memory_loops {
	const char *name;
	void (*gather)(const char *rows, size_t row_bytes, const uint32_t *index, size_t count,
		       size_t ahead, char *out);
	void (*gather_near)(const char *rows, size_t row_bytes, const uint32_t *index,
			    size_t count, size_t ahead, char *out);
	void (*rmw)(char *rows, size_t row_bytes, const uint32_t *index, size_t count,
		    size_t ahead);
	float (*stream)(const char *rows, size_t bytes);
};

const struct memory_loops *memory_loops(void);

#endif
