/* SPDX-License-Identifier: MIT */
/* Memory that is at hand for blocks of old rows, so that no step waits until the system has it. */
#ifndef EMBENG_RUNTIME_BLOCKS_H
#define EMBENG_RUNTIME_BLOCKS_H

#include <stdint.h>

#define HOST_BLOCK (2ull << 20)
#define HOST_BLOCKS_MOST (1ull << 30) /* bytes at hand, at most */

/* Makes blocks until so many bytes are at hand, or there is no memory. Any thread may call. */
void host_blocks_prepare(uint64_t bytes);
/* Gives back all that nobody took. */
void host_blocks_drop(void);

/*
 * Takes a block for @bytes, zeros all of it, which the caller unmaps. Return: NULL if none is at hand, or if
 * more than a block or less than half of one is wanted.
 */
void *host_block_take(uint64_t bytes);

#endif
