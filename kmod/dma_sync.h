/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_DMA_SYNC_H
#define EMBENG_DMA_SYNC_H

#include <linux/dma-mapping.h>

/**
 * embeng_dma_need_sync() - does the device see a copy of what is mapped at an address
 * @dev: device
 * @dma: address of it
 *
 * A kernel that debugs DMA has dma_need_sync() say yes for every device behind an IOMMU, so
 * that syncs are made and can be checked. This function says what it would say otherwise.
 */
static inline bool embeng_dma_need_sync(struct device *dev, dma_addr_t dma)
{
#ifdef CONFIG_DMA_API_DEBUG
	if (dev->dma_skip_sync)
		return false;
#endif
	return dma_need_sync(dev, dma);
}

#endif
