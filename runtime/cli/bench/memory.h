/* SPDX-License-Identifier: MIT */
/* Loops over memory, each for the widest vectors that the processor has. */
#ifndef CLI_BENCH_MEMORY_H
#define CLI_BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bags that a gather adds up; rows that are fetched ahead, at once, and beyond the last. */
#define MEMORY_POOL 20
#define MEMORY_AHEAD 64
#define MEMORY_BURST 128
#define MEMORY_BEYOND (MEMORY_AHEAD + MEMORY_BURST)

/**
 * enum memory_fetch - where rows go that a gather fetches ahead
 * @MEMORY_SECOND: into the second cache
 * @MEMORY_FIRST: into the first
 * @MEMORY_TOUCH: into the second, of rows of 128, 256 and 512 bytes the first line twice as far
 *	ahead
 * @MEMORY_BURSTS: into the second, of rows of 64 to 512 bytes MEMORY_BURST at once
 */
enum memory_fetch { MEMORY_SECOND, MEMORY_FIRST, MEMORY_TOUCH, MEMORY_BURSTS, MEMORY_FETCHES };

/**
 * struct memory_loops - of one kind of vectors
 * @gather: by enum memory_fetch: adds the rows [@count] of @index up, MEMORY_POOL to one, to
 *	@out
 * @rmw: adds to them; NULL for a fetch that this has not
 * @stream: reads @bytes, a multiple of 4096; returns their sum, so that they are read
 *
 * Rows are multiples of 64 bytes; @index has MEMORY_BEYOND more than @count, of which @ahead
 * are fetched, of touches twice as many, and of bursts those of one more.
 */
struct memory_loops {
	const char *name;
	void (*gather[MEMORY_FETCHES])(const char *rows, size_t row_bytes, const uint32_t *index,
				       size_t count, size_t ahead, char *out);
	void (*rmw[MEMORY_FETCHES])(char *rows, size_t row_bytes, const uint32_t *index,
				    size_t count, size_t ahead);
	float (*stream)(const char *rows, size_t bytes);
};

const struct memory_loops *memory_loops(void);

/* "second", "first", "touch" or "burst". */
const char *memory_fetch_name(enum memory_fetch fetch);

#endif
