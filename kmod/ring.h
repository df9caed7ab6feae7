/* SPDX-License-Identifier: GPL-2.0-only */
/* Arithmetic of free-running indices: they wrap at 2^32, distances do not. */
#ifndef EMBENG_RING_H
#define EMBENG_RING_H

#include <linux/types.h>

/**
 * embeng_ring_between() - is an index where it may be
 * @at: index
 * @from: the least
 * @to: the most, not before @from
 */
static inline bool embeng_ring_between(u32 at, u32 from, u32 to)
{
	return at - from <= to - from;
}

/**
 * embeng_ring_holds() - do more entries fit
 * @head: of the ring
 * @tail: of the ring
 * @more: entries
 * @entries: of the ring, at most 2^31
 */
static inline bool embeng_ring_holds(u32 head, u32 tail, u64 more, u32 entries)
{
	return (u64)(tail - head) + more <= entries;
}

#endif
