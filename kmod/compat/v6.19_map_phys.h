/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Linux 6.19 hands struct dma_map_ops a physical address (map_phys, unmap_phys) where older
 * kernels hand it a page and an offset (map_page, unmap_page).
 */
#ifndef EMBENG_COMPAT_V6_19_MAP_PHYS_H
#define EMBENG_COMPAT_V6_19_MAP_PHYS_H

#include <linux/dma-map-ops.h>
#include <linux/version.h>

/*
 * EMBENG_DEFINE_MAP_PAGE() stands where functions are defined, EMBENG_MAP_PHYS_OPS() among the
 * operations.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
#define EMBENG_DEFINE_MAP_PAGE(map)
#define EMBENG_MAP_PHYS_OPS(map, unmap) .map_phys = (map), .unmap_phys = (unmap)
#else
#define EMBENG_DEFINE_MAP_PAGE(map) \
	static dma_addr_t map##_of_page(struct device *dev, struct page *page, \
					unsigned long offset, size_t size, \
					enum dma_data_direction dir, unsigned long attrs) \
	{ \
		return map(dev, page_to_phys(page) + offset, size, dir, attrs); \
	}
#define EMBENG_MAP_PHYS_OPS(map, unmap) .map_page = map##_of_page, .unmap_page = (unmap)
#endif

#endif
