/* SPDX-License-Identifier: MIT */
/* Regions that commands take memory from, piece by piece, going round. */
#ifndef EMBENG_FUZZ_ARENA_H
#define EMBENG_FUZZ_ARENA_H

#include "../unit/support/rig.h"
#include "fuzz.h"

struct arena {
	u8 *data, *before; /* @before: a copy of what the device may not write */
	u64 used, length;
	struct embeng_mem key;
};

static inline void arena_make(struct arena *a, struct rig *rig, u32 context, u64 length, u32 rights)
{
	*a = (struct arena){.data = fuzz_memory(length), .length = length};
	if (!(rights & EMBENG_REGION_DEVICE_WRITE))
		a->before = fuzz_memory(length);
	a->key = rig_bind(rig, context, a->data, length, rights);
}

static inline void arena_free(struct arena *a)
{
	if (a->before)
		fuzz_check(!memcmp(a->data, a->before, a->length), "a region for reading changed");
	free(a->data);
	free(a->before);
}

/* Takes a piece of @bytes and sets its key. A piece larger than the arena is out of bounds. */
static inline u64 arena_take(struct arena *a, u64 bytes, struct embeng_mem *mem)
{
	u64 at = bytes > a->length - a->used ? 0 : a->used;

	a->used = bytes > a->length - at ? 0 : (at + bytes + 7) & ~7ull;
	if (a->used > a->length)
		a->used = 0;
	*mem = a->key;
	mem->offset = at;
	mem->length = bytes;
	return at;
}

static inline void arena_write(struct arena *a, u64 at, const void *data, u64 bytes)
{
	if (bytes > a->length - at || !bytes)
		return;
	memcpy(a->data + at, data, bytes);
	if (a->before)
		memcpy(a->before + at, data, bytes);
}

/* A copy of @data that the device may read. */
static inline struct embeng_mem arena_put(struct arena *a, const void *data, u64 bytes)
{
	struct embeng_mem mem;

	arena_write(a, arena_take(a, bytes, &mem), data, bytes);
	return mem;
}

#endif
