/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef EMBENG_BO_H
#define EMBENG_BO_H

#include <drm/drm_gem.h>

#include "driver.h"

struct embeng_context;

/**
 * struct embeng_bo - memory that the device can reach
 * @base: the GEM object, embedded
 * @link: entry in &embeng_device.bos while the device can reach the memory
 * @pages: pages that were made or pinned here; NULL if imported
 * @dma: address of each page for the device; NULL if imported or pinned
 * @table: imported or pinned memory, mapped for the device; NULL if made here
 * @payer: context that is charged for the memory, of which a reference is held; NULL if imported
 * @pinned_by: for pinned memory the user whose RLIMIT_MEMLOCK is charged, else NULL
 * @read_only: pinned memory that the device may only read
 *
 * The pages of a buffer that was made here have references of their own beside the DMA mapping, so
 * that they stay when the device goes.
 */
struct embeng_bo {
	struct drm_gem_object base;
	struct list_head link;
	struct page **pages;
	dma_addr_t *dma;
	struct sg_table *table;
	struct embeng_context *payer;
	struct user_struct *pinned_by;
	bool read_only;
};

static inline struct embeng_bo *to_embeng_bo(struct drm_gem_object *obj)
{
	return container_of(obj, struct embeng_bo, base);
}

/* bo.c */
struct embeng_bo *embeng_bo_new(struct embeng_device *ed, u64 size);
struct embeng_bo *embeng_bo_charge(struct embeng_context *ctx, u64 size);
struct embeng_bo *embeng_bo_make(struct embeng_context *ctx, u64 size);
int embeng_bo_check_pages(u64 pages);
int embeng_bo_read(const struct embeng_bo *bo, u64 offset, void *to, u64 length);
void embeng_bo_reached(struct embeng_bo *bo);
void embeng_bo_release_all(struct embeng_device *ed);
int embeng_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int embeng_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* bo_import.c: memory that others made */
bool embeng_import_needs_sync(struct embeng_device *ed, struct sg_table *table);
struct drm_gem_object *embeng_import(struct drm_device *drm, struct dma_buf *buffer);
struct drm_gem_object *embeng_import_table(struct drm_device *drm,
					   struct dma_buf_attachment *attachment,
					   struct sg_table *table);
void embeng_import_release(struct embeng_bo *bo);

/* bo_userptr.c */
void embeng_userptr_release(struct embeng_bo *bo);
void embeng_userptr_free(struct embeng_bo *bo);
int embeng_userptr_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

/* bo_segments.c */
int embeng_segments(struct embeng_bo *bo, u64 offset, u64 length, struct embeng_segment *out,
		    u32 room);

#endif
