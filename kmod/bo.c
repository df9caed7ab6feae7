// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffer objects: memory that the device can reach, and that a program maps and shares as any GEM
 * object. This file has what all kinds have in common, and the kind whose memory the driver makes;
 * bo_import.c and bo_userptr.c have the other two.
 *
 * The memory comes from the DMA layer page by page. The device reaches it without a bounce buffer,
 * wherever it is mapped, so that mapped queues need no kernel to sync it.
 *
 * A buffer lives as long as somebody holds the GEM object. The device may lose it earlier: at
 * unplug embeng_bo_release_all() takes all buffers from the device, while programs keep their
 * mappings: the pages stay until the object is freed. bo_lock guards the list of the buffers that
 * the device can reach and orders that release with the end of a buffer.
 */
#include <linux/cleanup.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include <drm/drm_prime.h>
#include <drm/drm_vma_manager.h>

#include "context.h"

#define PAGE_GFP (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static u64 count_bo_pages(const struct embeng_bo *bo)
{
	return bo->base.size >> PAGE_SHIFT;
}

static void release_made_pages(struct embeng_bo *bo)
{
	struct device *dev = bo->base.dev->dev;
	u64 i;

	for (i = 0; bo->pages && i < count_bo_pages(bo) && bo->pages[i]; i++) {
		get_page(bo->pages[i]);
		dma_free_pages(dev, PAGE_SIZE, bo->pages[i], bo->dma[i], DMA_BIDIRECTIONAL);
	}
	kvfree(bo->dma);
	bo->dma = NULL;
}

/* Unmaps a buffer from the device. Programs that have mapped it keep their mappings. */
static void release_bo(struct embeng_bo *bo)
{
	if (bo->dma)
		release_made_pages(bo);
	else if (bo->pinned_by)
		embeng_userptr_release(bo);
	else if (bo->table)
		embeng_import_release(bo);
}

static void free_bo_pages(struct embeng_bo *bo)
{
	u64 i;

	for (i = 0; i < count_bo_pages(bo) && bo->pages[i]; i++)
		put_page(bo->pages[i]);
	kvfree(bo->pages);
}

static void bo_free(struct drm_gem_object *obj)
{
	struct embeng_bo *bo = to_embeng_bo(obj);
	struct embeng_device *ed = to_embeng(obj->dev);

	scoped_guard(mutex, &ed->bo_lock) {
		release_bo(bo);
		list_del_init(&bo->link);
	}
	if (bo->pinned_by)
		embeng_userptr_free(bo);
	else if (bo->pages)
		free_bo_pages(bo);
	if (obj->import_attach)
		drm_prime_gem_destroy(obj, NULL);
	drm_gem_object_release(obj);
	if (bo->payer) {
		embeng_context_uncharge(bo->payer, obj->size);
		embeng_context_put(bo->payer);
	}
	kfree(bo);
}

static vm_fault_t bo_fault(struct vm_fault *vmf)
{
	struct embeng_bo *bo = to_embeng_bo(vmf->vma->vm_private_data);
	u64 at = vmf->pgoff - drm_vma_node_start(&bo->base.vma_node);

	if (at >= count_bo_pages(bo))
		return VM_FAULT_SIGBUS;
	get_page(bo->pages[at]);
	vmf->page = bo->pages[at];
	return 0;
}

static const struct vm_operations_struct vm_ops = {
	.open = drm_gem_vm_open,
	.close = drm_gem_vm_close,
	.fault = bo_fault,
};

static int mmap_imported_bo(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	int ret;

	vma->vm_private_data = NULL;
	vma->vm_ops = NULL;
	ret = dma_buf_mmap(obj->dma_buf, vma, 0);
	if (!ret)
		drm_gem_object_put(obj);
	return ret;
}

static int bo_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	struct embeng_bo *bo = to_embeng_bo(obj);

	if (!(vma->vm_flags & VM_SHARED) || bo->pinned_by)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP);
	return obj->import_attach ? mmap_imported_bo(obj, vma) : 0;
}

static struct sg_table *bo_get_sg_table(struct drm_gem_object *obj)
{
	return drm_prime_pages_to_sg(obj->dev, to_embeng_bo(obj)->pages, obj->size >> PAGE_SHIFT);
}

/* A program's own pages that it pinned are not shared with others. */
static struct dma_buf *bo_export(struct drm_gem_object *obj, int flags)
{
	if (to_embeng_bo(obj)->pinned_by)
		return ERR_PTR(-EOPNOTSUPP);
	return drm_gem_prime_export(obj, flags);
}

static const struct drm_gem_object_funcs funcs = {
	.free = bo_free,
	.export = bo_export,
	.get_sg_table = bo_get_sg_table,
	.mmap = bo_mmap,
	.vm_ops = &vm_ops,
};

/**
 * embeng_bo_new() - make a buffer object that has no memory yet
 * @ed: device
 * @size: bytes, whole pages
 *
 * Return: the object, or NULL.
 */
struct embeng_bo *embeng_bo_new(struct embeng_device *ed, u64 size)
{
	struct embeng_bo *bo = kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);

	if (!bo)
		return NULL;
	INIT_LIST_HEAD(&bo->link);
	bo->base.funcs = &funcs;
	drm_gem_private_object_init(&ed->drm, &bo->base, size);
	return bo;
}

/**
 * embeng_bo_charge() - make a buffer object that has no memory yet, and charge a context for it
 * @ctx: context, which is charged until the object is freed
 * @size: bytes, whole pages
 *
 * Return: the object, or an error pointer: -EDQUOT, -EOVERFLOW or -ENOMEM.
 */
struct embeng_bo *embeng_bo_charge(struct embeng_context *ctx, u64 size)
{
	struct embeng_bo *bo;
	int ret = embeng_context_charge(ctx, size);

	if (ret)
		return ERR_PTR(ret);
	bo = embeng_bo_new(ctx->device, size);
	if (!bo) {
		embeng_context_uncharge(ctx, size);
		return ERR_PTR(-ENOMEM);
	}
	kref_get(&ctx->ref);
	bo->payer = ctx;
	return bo;
}

/**
 * embeng_bo_read() - read bytes of a buffer that the driver made
 * @bo: buffer
 * @offset: first byte
 * @to: where they go
 * @length: number of bytes, which lie inside of the buffer
 *
 * Return: 0, or -EOPNOTSUPP for a buffer that was pinned or imported: others own such memory, and
 * it may not be looked at without their consent.
 */
int embeng_bo_read(const struct embeng_bo *bo, u64 offset, void *to, u64 length)
{
	u64 done, part;

	if (!bo->pages || bo->pinned_by)
		return -EOPNOTSUPP;
	for (done = 0; done < length; done += part) {
		u64 at = offset + done;

		part = min(length - done, PAGE_SIZE - offset_in_page(at));
		memcpy_from_page(to + done, bo->pages[at >> PAGE_SHIFT], offset_in_page(at), part);
	}
	return 0;
}

/**
 * embeng_bo_reached() - list a buffer that the device can reach from now on
 * @bo: buffer, mapped for the device
 */
void embeng_bo_reached(struct embeng_bo *bo)
{
	struct embeng_device *ed = to_embeng(bo->base.dev);

	guard(mutex)(&ed->bo_lock);
	list_add(&bo->link, &ed->bos);
}

/**
 * embeng_bo_release_all() - unmap all buffers before the driver lets go of the device
 * @ed: device, unplugged and silent
 */
void embeng_bo_release_all(struct embeng_device *ed)
{
	struct embeng_bo *bo, *next;

	guard(mutex)(&ed->bo_lock);
	list_for_each_entry_safe(bo, next, &ed->bos, link) {
		release_bo(bo);
		list_del_init(&bo->link);
	}
}

static int allocate_bo_pages(struct embeng_bo *bo)
{
	struct device *dev = bo->base.dev->dev;
	u64 i;

	for (i = 0; i < count_bo_pages(bo); i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		bo->pages[i] = dma_alloc_pages(dev, PAGE_SIZE, &bo->dma[i], DMA_BIDIRECTIONAL,
					       PAGE_GFP);
		if (!bo->pages[i])
			return -ENOMEM;
		cond_resched();
	}
	return 0;
}

/**
 * embeng_bo_check_pages() - check that a buffer of this many pages can be made
 * @pages: number of pages
 *
 * Return: 0, or -ENOMEM for more pages than the machine has or than an array of them can hold.
 */
int embeng_bo_check_pages(u64 pages)
{
	return pages > min_t(u64, totalram_pages(), INT_MAX / sizeof(struct page *)) ? -ENOMEM : 0;
}

/**
 * embeng_bo_make() - make a buffer of zeroed memory
 * @ctx: context, which is charged for it
 * @size: bytes, from 1
 *
 * Return: the buffer, or an error pointer.
 */
struct embeng_bo *embeng_bo_make(struct embeng_context *ctx, u64 size)
{
	u64 pages = DIV_ROUND_UP_ULL(size, PAGE_SIZE);
	struct embeng_bo *bo;
	int ret = embeng_bo_check_pages(pages);

	if (ret)
		return ERR_PTR(ret);
	ret = -ENOMEM;
	bo = embeng_bo_charge(ctx, pages << PAGE_SHIFT);
	if (IS_ERR(bo))
		return bo;
	bo->pages = kvcalloc(pages, sizeof(*bo->pages), EMBENG_GFP_WISH);
	bo->dma = kvcalloc(pages, sizeof(*bo->dma), EMBENG_GFP_WISH);
	if (bo->pages && bo->dma)
		ret = allocate_bo_pages(bo);
	if (!ret)
		ret = drm_gem_create_mmap_offset(&bo->base);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	embeng_bo_reached(bo);
	return bo;
}

/**
 * embeng_bo_create_ioctl() - DRM_IOCTL_EMBENG_BO_CREATE
 * @drm: device
 * @data: &struct embeng_accel_bo_create
 * @file: owner of the handle
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_bo_create *arg = data;
	struct embeng_bo *bo;
	u32 handle;
	int ret;

	CLASS(embeng_use, use)(to_embeng(drm));
	if (!use.device)
		return -ENODEV;
	if (!arg->size || arg->flags || arg->handle || arg->offset)
		return -EINVAL;
	if (arg->size > U64_MAX - PAGE_SIZE)
		return -EOVERFLOW;
	bo = embeng_bo_make(to_embeng_context(file), arg->size);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->base, &handle);
	if (!ret) {
		arg->handle = handle;
		arg->offset = drm_vma_node_offset_addr(&bo->base.vma_node);
	}
	drm_gem_object_put(&bo->base);
	return ret;
}

/**
 * embeng_bo_info_ioctl() - DRM_IOCTL_EMBENG_BO_INFO
 * @drm: device
 * @data: &struct embeng_accel_bo_info
 * @file: owner of the handle
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_bo_info *arg = data;
	struct drm_gem_object *obj;
	int ret = 0;

	CLASS(embeng_use, use)(to_embeng(drm));
	if (!use.device)
		return -ENODEV;
	if (arg->reserved || arg->size || arg->offset)
		return -EINVAL;
	obj = drm_gem_object_lookup(file, arg->handle);
	if (!obj)
		return -ENOENT;
	if (!to_embeng_bo(obj)->pinned_by)
		ret = drm_gem_create_mmap_offset(obj);
	if (!ret) {
		arg->size = obj->size;
		arg->offset = drm_vma_node_offset_addr(&obj->vma_node);
	}
	drm_gem_object_put(obj);
	return ret;
}
