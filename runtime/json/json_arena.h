/* SPDX-License-Identifier: MIT */
/* Memory of one document: handed out piece by piece, freed all at once. */
#ifndef EMBENG_JSON_ARENA_H
#define EMBENG_JSON_ARENA_H

#include <stddef.h>

struct json_block;

/* A zeroed struct is an arena without memory. */
struct json_arena {
	struct json_block *blocks; /* the newest first */
};

/* Hands out memory for any type; @bytes is at least 1. Return: NULL when there is no memory. */
void *json_arena_take(struct json_arena *arena, size_t bytes);
void json_arena_free(struct json_arena *arena);

#endif
