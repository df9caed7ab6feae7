// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a program has already: its pages are pinned for long and charged to RLIMIT_MEMLOCK,
 * so that data need not be copied into a buffer of the driver's.
 *
 * A buffer goes in two steps, because the device may be lost before the program lets go.
 * embeng_userptr_release() unmaps the pages from the device, under bo_lock; embeng_userptr_free()
 * unpins them and gives the charge back, when nobody holds the object any more. The charge belongs
 * to the user whose process pinned, and not to the process, which may end before its pages are
 * unpinned.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/sched/user.h>

#include "context.h"

static int count_pinned_pages(const struct embeng_bo *bo)
{
	return bo->base.size >> PAGE_SHIFT;
}

/* No syncs: memory that needs them is refused, and another buffer may have pinned the same page. */
#define ATTRIBUTES DMA_ATTR_SKIP_CPU_SYNC

static enum dma_data_direction choose_direction(const struct embeng_bo *bo)
{
	return bo->read_only ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
}

/**
 * embeng_userptr_release() - unmap pinned memory from the device
 * @bo: buffer of pinned memory
 */
void embeng_userptr_release(struct embeng_bo *bo)
{
	if (!bo->table)
		return;
	dma_unmap_sgtable(bo->base.dev->dev, bo->table, choose_direction(bo), ATTRIBUTES);
	sg_free_table(bo->table);
	kfree(bo->table);
	bo->table = NULL;
}

/**
 * embeng_userptr_free() - unpin the pages and give the RLIMIT_MEMLOCK charge back
 * @bo: buffer of pinned memory, released by embeng_userptr_release()
 */
void embeng_userptr_free(struct embeng_bo *bo)
{
	if (bo->pages) {
		unpin_user_pages_dirty_lock(bo->pages, count_pinned_pages(bo), !bo->read_only);
		kvfree(bo->pages);
		atomic_long_sub(count_pinned_pages(bo), &bo->pinned_by->locked_vm);
	}
	free_uid(bo->pinned_by);
}

/* Counted with what io_uring, BPF and others have locked for the user. */
static int lock_user_memory(struct user_struct *user, long pages)
{
	long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long locked = atomic_long_read(&user->locked_vm);

	do {
		if (locked + pages > limit && !capable(CAP_IPC_LOCK))
			return -ENOMEM;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &locked, locked + pages));
	return 0;
}

static int pin_user_memory(struct embeng_bo *bo, u64 address)
{
	unsigned int flags = FOLL_LONGTERM | (bo->read_only ? 0 : FOLL_WRITE);
	struct page **pages = kvcalloc(count_pinned_pages(bo), sizeof(*pages), EMBENG_GFP_WISH);
	int got, ret = -ENOMEM;

	if (!pages)
		return -ENOMEM;
	if (lock_user_memory(bo->pinned_by, count_pinned_pages(bo)))
		goto free;
	got = pin_user_pages_fast(address, count_pinned_pages(bo), flags, pages);
	if (got == count_pinned_pages(bo)) {
		bo->pages = pages;
		return 0;
	}
	if (got > 0)
		unpin_user_pages(pages, got);
	ret = got < 0 ? got : -EFAULT;
	atomic_long_sub(count_pinned_pages(bo), &bo->pinned_by->locked_vm);
free:
	kvfree(pages);
	return ret;
}

static int map_pinned_pages(struct embeng_bo *bo)
{
	struct embeng_device *ed = to_embeng(bo->base.dev);
	struct sg_table *table = kzalloc(sizeof(*table), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!table)
		return -ENOMEM;
	ret = sg_alloc_table_from_pages(table, bo->pages, count_pinned_pages(bo), 0, bo->base.size,
					EMBENG_GFP_WISH);
	if (ret)
		goto free;
	ret = dma_map_sgtable(&ed->pci->dev, table, choose_direction(bo), ATTRIBUTES);
	if (ret) {
		sg_free_table(table);
		goto free;
	}
	bo->table = table;
	/* On an error the caller releases the mapping. */
	return embeng_import_needs_sync(ed, table) ? -EOPNOTSUPP : 0;
free:
	kfree(table);
	return ret;
}

static int let_device_reach(struct embeng_bo *bo)
{
	int ret;

	CLASS(embeng_use, use)(to_embeng(bo->base.dev));
	if (!use.device)
		return -ENODEV;
	ret = map_pinned_pages(bo);
	if (!ret)
		embeng_bo_reached(bo);
	else
		embeng_userptr_release(bo);
	return ret;
}

static struct embeng_bo *make_userptr(struct embeng_context *ctx,
				      const struct embeng_accel_userptr *arg)
{
	struct embeng_bo *bo = embeng_bo_charge(ctx, arg->size);
	int ret;

	if (IS_ERR(bo))
		return bo;
	bo->read_only = arg->flags & EMBENG_ACCEL_USERPTR_READ_ONLY;
	bo->pinned_by = get_uid(current_user());
	/* A page may never come, so that nothing is held here that an unbind waits for. */
	ret = pin_user_memory(bo, arg->address);
	if (!ret)
		ret = let_device_reach(bo);
	if (ret) {
		drm_gem_object_put(&bo->base);
		return ERR_PTR(ret);
	}
	return bo;
}

static int check_userptr(const struct embeng_accel_userptr *arg)
{
	u64 end;

	if (arg->flags & ~EMBENG_ACCEL_USERPTR_READ_ONLY || arg->handle)
		return -EINVAL;
	if (!arg->size || !PAGE_ALIGNED(arg->size) || !PAGE_ALIGNED(arg->address))
		return -EINVAL;
	if (check_add_overflow(arg->address, arg->size, &end))
		return -EOVERFLOW;
	return embeng_bo_check_pages(arg->size >> PAGE_SHIFT);
}

/**
 * embeng_userptr_ioctl() - DRM_IOCTL_EMBENG_USERPTR
 * @drm: device
 * @data: &struct embeng_accel_userptr
 * @file: owner of the handle
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_userptr_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_userptr *arg = data;
	struct embeng_bo *bo;
	u32 handle;
	int ret = check_userptr(arg);

	if (ret)
		return ret;
	bo = make_userptr(to_embeng_context(file), arg);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	ret = drm_gem_handle_create(file, &bo->base, &handle);
	if (!ret)
		arg->handle = handle;
	drm_gem_object_put(&bo->base);
	return ret;
}
