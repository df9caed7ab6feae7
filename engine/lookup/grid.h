/* SPDX-License-Identifier: MIT */
/* Limits and the grid of cores of partitioned CSR, which writers and readers share. */
#ifndef EMBENG_ENGINE_GRID_H
#define EMBENG_ENGINE_GRID_H

#include "../device/device.h"

#define PCSR_ALIGN 8u
#define PCSR_ITEMS_MAX 0x7ffffff8u /* positions are s32 */

static inline u64 pcsr_aligned(u64 items)
{
	return (items + PCSR_ALIGN - 1) & ~(u64)(PCSR_ALIGN - 1);
}

/* A grid of so many cores, of which a device has so many; @index: of whose fault it is. */
u16 pcsr_check_grid(u32 cores, u32 device_cores, u32 index, struct fault *fault);

#endif
