/* SPDX-License-Identifier: MIT */
/* Reading memory that others may write meanwhile: copied first, and only the copy is judged. */
#ifndef EMBENG_ENGINE_SNAPSHOT_H
#define EMBENG_ENGINE_SNAPSHOT_H

#include "../types.h"

/* Compilers may read shared memory again instead of the copy; not across this. */
#define COPIED() __asm__ __volatile__("" ::: "memory")

/* The top bit tells that an id is not below @limit, which is below 2^63. Vectors, too. */
#define ID_OUTSIDE(id, limit) ((id) | ((limit) - 1 - (id)))

/**
 * ids_widen() - copy numbers of 4 or 8 bytes, signed
 * @to: out, [@count]
 * @from: need not be given for none
 * @count: how many
 * @width: bytes of each
 */
static inline void ids_widen(u64 *to, const void *from, u64 count, u32 width)
{
	const s32 *narrow = from;

	if (!count)
		return;
	if (width == sizeof(u64))
		__builtin_memcpy(to, from, count * sizeof(u64));
	else
		for (u64 i = 0; i < count; i++)
			to[i] = (u64)(s64)narrow[i];
	COPIED();
}

#endif
