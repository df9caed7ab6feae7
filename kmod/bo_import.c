// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers of other drivers, handed in as dma-bufs, and the question that decides whether any
 * foreign memory is accepted: does the device see the pages themselves? A program drives the
 * device without the kernel, so nobody could copy between a page and its bounce buffer at the
 * right moment.
 *
 * An import holds its attachment until the object is freed. Its mapping for the device ends with
 * the object or at unplug, whichever comes first; bo.c calls embeng_import_release() under bo_lock
 * for both. Nothing else here takes a lock. embeng_import_init() sets its result once, at
 * probe.
 */
#include <linux/cleanup.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>

#include <drm/drm_prime.h>

#include "bo.h"
#include "compat/v6.13_import_ns.h"
#include "dma_sync.h"

EMBENG_IMPORT_NS(DMA_BUF);

/**
 * embeng_import_needs_sync() - tell whether the device sees a bounce-buffer copy of this memory
 * @ed: device
 * @table: memory, mapped for the device
 *
 * Bounced memory has to be synced around each access, which nobody can do for a device
 * that a program drives by itself.
 */
bool embeng_import_needs_sync(struct embeng_device *ed, struct sg_table *table)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(table, sg, i) {
		if (embeng_dma_need_sync(&ed->pci->dev, sg_dma_address(sg)))
			return true;
	}
	return false;
}

static void free_probe_page(struct page *page)
{
	if (page)
		__free_page(page);
}

DEFINE_FREE(probe_page, struct page *, free_probe_page(_T))

/* Both sides write rings and buffers without asking the kernel, so memory has to be coherent. */
static int check_coherence(struct embeng_device *ed)
{
	struct device *dev = &ed->pci->dev;
	dma_addr_t dma;
	struct page *page = dma_alloc_pages(dev, PAGE_SIZE, &dma, DMA_BIDIRECTIONAL, GFP_KERNEL);
	bool needs_sync;

	if (!page)
		return -ENOMEM;
	needs_sync = embeng_dma_need_sync(dev, dma);
	dma_free_pages(dev, PAGE_SIZE, page, dma, DMA_BIDIRECTIONAL);
	if (needs_sync)
		return dev_err_probe(dev, -EOPNOTSUPP,
				     "the device does not see memory as the processors do\n");
	return 0;
}

/**
 * embeng_import_init() - find out whether the device reaches pages without a bounce buffer
 * @ed: device
 *
 * One page is tried, once: a kernel that bounces one page for this device bounces all of them.
 *
 * Return: 0, -ENOMEM, or -EOPNOTSUPP where not even memory that is made for the device is
 * coherent.
 */
int embeng_import_init(struct embeng_device *ed)
{
	struct page *page __free(probe_page) = alloc_page(GFP_KERNEL);
	struct device *dev = &ed->pci->dev;
	dma_addr_t dma;

	if (!page)
		return -ENOMEM;
	dma = dma_map_page(dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dev, dma))
		return -ENOMEM;
	ed->can_pin = !embeng_dma_need_sync(dev, dma);
	dma_unmap_page(dev, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	return check_coherence(ed);
}

/**
 * embeng_import() - make a buffer object for a dma-buf, or find the one that it was made from
 * @drm: device
 * @buffer: dma-buf
 *
 * Return: the object, or an error pointer; -ENODEV when the device is gone.
 */
struct drm_gem_object *embeng_import(struct drm_device *drm, struct dma_buf *buffer)
{
	CLASS(embeng_use, use)(to_embeng(drm));

	return use.device ? drm_gem_prime_import(drm, buffer) : ERR_PTR(-ENODEV);
}

/**
 * embeng_import_table() - make a buffer object for a dma-buf
 * @drm: device
 * @attachment: attachment of this device to the dma-buf
 * @table: the dma-buf's memory, mapped for the device
 *
 * Return: the object, or an error pointer.
 */
struct drm_gem_object *embeng_import_table(struct drm_device *drm,
					   struct dma_buf_attachment *attachment,
					   struct sg_table *table)
{
	struct embeng_device *ed = to_embeng(drm);
	struct embeng_bo *bo;

	if (embeng_import_needs_sync(ed, table))
		return ERR_PTR(-EOPNOTSUPP);
	bo = embeng_bo_new(ed, PAGE_ALIGN(attachment->dmabuf->size));
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->table = table;
	embeng_bo_reached(bo);
	return &bo->base;
}

/**
 * embeng_import_release() - unmap an imported buffer from the device
 * @bo: imported buffer
 */
void embeng_import_release(struct embeng_bo *bo)
{
	dma_buf_unmap_attachment_unlocked(bo->base.import_attach, bo->table, DMA_BIDIRECTIONAL);
	bo->table = NULL;
}
