/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_DMA_SYNC_H
#define EMBENG_DMA_SYNC_H

#include <linux/dma-mapping.h>

/**
 * embeng_dma_need_sync() - tell whether the device sees a bounce-buffer copy of mapped memory
 * @dev: device
 * @dma: DMA address of the memory
 *
 * In a kernel that debugs DMA, dma_need_sync() is true for every device behind an IOMMU, so that
 * syncs are made and can be checked. This function gives the answer without that.
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
