// SPDX-License-Identifier: MIT
/*
 * Memory at hand for blocks that the engine asks for in the middle of a step: the old rows that a
 * snapshot keeps. The system fills memory with zeros when it is first touched, and may have to move
 * other pages out of the way for that. A thread that saves has this done ahead, so that the step
 * finds memory that it can use at once.
 *
 * The blocks that nobody has taken belong to the process, and a lock guards the list of them, which is held
 * for a few instructions.
 */
#include "blocks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS_MOST (HOST_BLOCKS_MOST / HOST_BLOCK)

static struct {
	pthread_mutex_t lock;
	uint64_t count;
	char *list[BLOCKS_MOST];
} at_hand = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *pop_block(void)
{
	char *block = NULL;

	pthread_mutex_lock(&at_hand.lock);
	if (at_hand.count)
		block = at_hand.list[--at_hand.count];
	pthread_mutex_unlock(&at_hand.lock);
	return block;
}

static bool push_block(char *block, uint64_t most)
{
	bool fits;

	pthread_mutex_lock(&at_hand.lock);
	fits = at_hand.count < most;
	if (fits)
		at_hand.list[at_hand.count++] = block;
	pthread_mutex_unlock(&at_hand.lock);
	return fits;
}

static bool has_blocks(uint64_t most)
{
	bool has;

	pthread_mutex_lock(&at_hand.lock);
	has = at_hand.count >= most;
	pthread_mutex_unlock(&at_hand.lock);
	return has;
}

/* Without huge pages: finding one may take the system longer than a step. */
static char *make_block(uint64_t page)
{
	char *block = mmap(NULL, HOST_BLOCK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (block == MAP_FAILED)
		return NULL;
	for (uint64_t at = 0; at < HOST_BLOCK; at += page)
		((volatile char *)block)[at] = 0;
	return block;
}

void host_blocks_prepare(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t most = (bytes < HOST_BLOCKS_MOST ? bytes : HOST_BLOCKS_MOST) / HOST_BLOCK;

	while (!has_blocks(most)) {
		char *block = make_block(page);

		if (!block)
			return;
		if (!push_block(block, most))
			munmap(block, HOST_BLOCK);
	}
}

void host_blocks_drop(void)
{
	for (char *block = pop_block(); block; block = pop_block())
		munmap(block, HOST_BLOCK);
}

void *host_block_take(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t used = (bytes + page - 1) / page * page;
	char *block = bytes > HOST_BLOCK / 2 && bytes <= HOST_BLOCK ? pop_block() : NULL;

	if (block && used < HOST_BLOCK)
		munmap(block + used, HOST_BLOCK - used);
	return block;
}
