/* SPDX-License-Identifier: GPL-2.0-only */
/* Arithmetic of free-running indices: they wrap at 2^32, distances do not. */
#ifndef EMBENG_RING_H
#define EMBENG_RING_H

#include <linux/types.h>

/**
 * embeng_ring_between() - check that an index is in a range
 * @at: index
 * @from: least index
 * @to: greatest index, not before @from
 */
static inline bool embeng_ring_between(u32 at, u32 from, u32 to)
{
	return at - from <= to - from;
}

/**
 * embeng_ring_holds() - check that more entries fit into a ring
 * @head: head of the ring
 * @tail: tail of the ring
 * @more: number of entries to add
 * @entries: size of the ring in entries, at most 2^31
 */
static inline bool embeng_ring_holds(u32 head, u32 tail, u64 more, u32 entries)
{
	return (u64)(tail - head) + more <= entries;
}

#endif
