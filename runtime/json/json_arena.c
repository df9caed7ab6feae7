// SPDX-License-Identifier: MIT
/*
 * The arena of a document. Its blocks grow with the document, so that a large one is not made of
 * thousands, and none of them ever moves: values point at each other.
 */
#include <stdint.h>
#include <stdlib.h>

#include "json_arena.h"

#define BLOCK_LEAST ((size_t)4 << 10)
#define BLOCK_MOST ((size_t)1 << 20)

struct json_block {
	struct json_block *next;
	size_t used, size;
	_Alignas(max_align_t) char bytes[];
};

static struct json_block *add_block(struct json_arena *arena, size_t bytes)
{
	size_t size = arena->blocks ? 2 * arena->blocks->size : BLOCK_LEAST;
	struct json_block *block;

	if (size > BLOCK_MOST)
		size = BLOCK_MOST;
	if (size < bytes)
		size = bytes;
	block = size <= SIZE_MAX - sizeof(*block) ? malloc(sizeof(*block) + size) : NULL;
	if (!block)
		return NULL;
	block->next = arena->blocks;
	block->used = 0;
	block->size = size;
	arena->blocks = block;
	return block;
}

void *json_arena_take(struct json_arena *arena, size_t bytes)
{
	const size_t align = _Alignof(max_align_t);
	struct json_block *block = arena->blocks;
	void *taken;

	if (bytes > SIZE_MAX - align)
		return NULL;
	bytes = (bytes + align - 1) / align * align;
	if (!block || block->size - block->used < bytes)
		block = add_block(arena, bytes);
	if (!block)
		return NULL;
	taken = block->bytes + block->used;
	block->used += bytes;
	return taken;
}

void json_arena_free(struct json_arena *arena)
{
	while (arena->blocks) {
		struct json_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
}
