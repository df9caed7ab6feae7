/* SPDX-License-Identifier: MIT */
/* Memory of one document: handed out piece by piece, given back all at once. */
#ifndef EMBENG_JSON_ARENA_H
#define EMBENG_JSON_ARENA_H

#include <stddef.h>

struct json_block;

/* Zeroed: an arena without memory. */
struct json_arena {
	struct json_block *blocks; /* the newest first */
};

/* Memory for anything, of at least 1 byte; NULL when there is none. */
void *json_arena_take(struct json_arena *arena, size_t bytes);
void json_arena_free(struct json_arena *arena);

#endif
