/* SPDX-License-Identifier: MIT */
/* Loops over memory, each for the widest vectors that the processor has. */
#ifndef CLI_BENCH_MEMORY_H
#define CLI_BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Rows in a bag that a gather adds up; most rows fetched ahead, in a burst, and beyond the last. */
#define MEMORY_POOL 20
#define MEMORY_AHEAD 64
#define MEMORY_BURST 128
#define MEMORY_BEYOND (MEMORY_AHEAD + MEMORY_BURST)

/**
 * enum memory_fetch - ways in which a gather fetches rows ahead
 * @MEMORY_SECOND: into the second cache
 * @MEMORY_FIRST: into the first cache
 * @MEMORY_TOUCH: into the second cache; the first line of rows of 128, 256 and 512 bytes twice as
 *	far ahead
 * @MEMORY_BURSTS: into the second cache; rows of 64 to 512 bytes MEMORY_BURST at once
 */
enum memory_fetch { MEMORY_SECOND, MEMORY_FIRST, MEMORY_TOUCH, MEMORY_BURSTS, MEMORY_FETCHES };

/**
 * struct memory_loops - loops for one kind of vectors
 * @gather: for each enum memory_fetch: adds MEMORY_POOL rows at a time up to one row of @out;
 *	@index has @count row numbers
 * @rmw: for each enum memory_fetch: adds to the rows of @index; NULL if there is no such loop
 * @stream: reads @bytes, a multiple of 4096, and returns their sum, so that they are really read
 *
 * Rows are multiples of 64 bytes. @index has MEMORY_BEYOND row numbers behind @count, because
 * @ahead rows are fetched beyond the end, twice as many with MEMORY_TOUCH and another burst with
 * MEMORY_BURSTS.
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

/* The word for a fetch: "second", "first", "touch" or "burst". */
const char *memory_fetch_name(enum memory_fetch fetch);

#endif
