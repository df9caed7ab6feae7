// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of rings, doorbells and registers. Offsets below those of buffers:
 *
 *	1 GiB + queue * 1 MiB	ring
 *	2 GiB + queue * page	doorbell
 *	3 GiB			registers
 *
 * Pages are put in by faults. A queue that ends has its mappings revoked, and the next fault finds
 * the right page then: the scratch page of its kind and file, or, after an unplug, a copy of what
 * the ring held. So a program that polls a ring gets no SIGBUS, and never sees another queue's
 * doorbell.
 *
 * Before a reset, and while the bus is not to be trusted, doorbells and registers are taken away
 * from all programs: the function may have its memory decoding off, and a read or write that nobody
 * answers stops the machine on some. Faults show scratch pages meanwhile. Registers are shown again
 * afterwards; doorbells are not, since their contexts are lost.
 *
 * A mapping names its queue by the timeline, which is never used twice, and holds no reference to
 * it; the file of the mapping keeps the context. map_lock orders a fault with the end of a queue.
 */
#include <linux/capability.h>
#include <linux/cleanup.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <drm/drm_gem.h>
#include <drm/drm_vma_manager.h>

#include "context.h"

#define RING_BASE ((u64)SZ_1G)
#define RING_STRIDE ((u64)SZ_1M)
#define DOORBELL_BASE ((u64)SZ_2G)
#define REGISTERS_BASE ((u64)SZ_1G + SZ_2G)

static_assert(RING_BASE + EMBENG_QUEUES_MAX * RING_STRIDE <= DOORBELL_BASE);
static_assert(DOORBELL_BASE + (u64)EMBENG_QUEUES_MAX * PAGE_SIZE <= REGISTERS_BASE);

/*
 * A mapping, which names its queue by the timeline: numbers of queues are used again, timelines
 * are not. So size and rights, checked when it was made, hold for all that it ever shows.
 */
struct mapping {
	struct kref ref;
	struct embeng_context *context; /* the file of the mapping keeps it */
	u64 timeline; /* timeline of the queue */
};

/* The place that a page offset refers to. */
struct place {
	enum embeng_place what;
	u32 queue;
	u64 offset; /* offset within it */
};

/**
 * embeng_mmap_ring_offset() - the offset at which mmap() finds a ring
 * @q: queue
 */
u64 embeng_mmap_ring_offset(const struct embeng_queue *q)
{
	return RING_BASE + q->number * RING_STRIDE;
}

/**
 * embeng_mmap_doorbell_offset() - the offset at which mmap() finds a doorbell
 * @q: queue
 *
 * Return: offset, or 0 for a validated queue.
 */
u64 embeng_mmap_doorbell_offset(const struct embeng_queue *q)
{
	return q->mapped ? DOORBELL_BASE + (u64)q->number * PAGE_SIZE : 0;
}

/**
 * embeng_mmap_registers_offset() - the offset at which mmap() finds the registers
 *
 * Return: offset, or 0 when the caller may not map them.
 */
u64 embeng_mmap_registers_offset(void)
{
	return capable(CAP_SYS_RAWIO) ? REGISTERS_BASE : 0;
}

static struct place find_place(u64 offset)
{
	struct place place = { EMBENG_PLACE_NONE };

	if (offset >= REGISTERS_BASE) {
		place.what = EMBENG_PLACE_REGISTERS;
		place.offset = offset - REGISTERS_BASE;
	} else if (offset >= DOORBELL_BASE) {
		place.what = EMBENG_PLACE_DOORBELL;
		place.queue = (offset - DOORBELL_BASE) / PAGE_SIZE;
	} else if (offset >= RING_BASE) {
		place.what = EMBENG_PLACE_RING;
		place.queue = (offset - RING_BASE) / RING_STRIDE;
		place.offset = (offset - RING_BASE) % RING_STRIDE;
	}
	return place;
}

static unsigned long find_bar_pfn(struct embeng_device *ed, int bar, u64 offset)
{
	return (pci_resource_start(ed->pci, bar) + offset) >> PAGE_SHIFT;
}

/* Each kind has its own page, so that a write to a doorbell does not show as a ring's header. */
static unsigned long find_scratch_pfn(const struct embeng_context *ctx, const struct place *place)
{
	return page_to_pfn(ctx->scratch[place->what]);
}

/* Under map_lock. Return: the queue, or NULL once it was destroyed. */
static struct embeng_queue *find_mapped_queue(const struct mapping *m, const struct place *place)
{
	struct embeng_queue *q = xa_load(&m->context->queues, place->queue);

	return q && q->timeline == m->timeline && !q->destroyed ? q : NULL;
}

/* False from the beginning of a reset on, see embeng_mmap_hold_off(). Under map_lock. */
static bool may_show_bars(const struct embeng_device *ed)
{
	/* Pairs with revive_after_reset(): who sees that the bus is back sees the reset, too. */
	bool offline = smp_load_acquire(&ed->offline);

	return !offline && !READ_ONCE(ed->resetting) && !embeng_gone(ed);
}

/* A device that was given up is read to find out why; nobody resets it any more. */
static bool may_show_registers(const struct embeng_device *ed)
{
	return may_show_bars(ed) || (READ_ONCE(ed->resets.wedged) && !READ_ONCE(ed->resetting));
}

/* Called under map_lock while the device is there. */
static unsigned long find_live_pfn(const struct mapping *m, const struct place *place)
{
	struct embeng_device *ed = m->context->device;
	struct embeng_queue *q;

	if (place->what == EMBENG_PLACE_REGISTERS && may_show_registers(ed))
		return find_bar_pfn(ed, EMBENG_BAR_REGISTERS, place->offset);
	if (place->what != EMBENG_PLACE_RING && !may_show_bars(ed))
		return find_scratch_pfn(m->context, place);
	q = find_mapped_queue(m, place);
	if (!q || (place->what == EMBENG_PLACE_DOORBELL && READ_ONCE(m->context->lost)))
		return find_scratch_pfn(m->context, place);
	if (place->what == EMBENG_PLACE_DOORBELL)
		return find_bar_pfn(ed, EMBENG_BAR_DOORBELLS, (u64)q->number * ed->doorbell_stride);
	return page_to_pfn(q->pages) + (place->offset >> PAGE_SHIFT);
}

static unsigned long find_dead_pfn(const struct mapping *m, const struct place *place)
{
	struct embeng_queue *q = find_mapped_queue(m, place);

	if (place->what == EMBENG_PLACE_RING && q)
		return vmalloc_to_pfn(q->grave + place->offset);
	return find_scratch_pfn(m->context, place);
}

static vm_fault_t handle_mapping_fault(struct vm_fault *vmf)
{
	const struct mapping *m = vmf->vma->vm_private_data;
	struct place place = find_place((u64)vmf->pgoff << PAGE_SHIFT);
	unsigned long pfn;
	vm_fault_t ret;
	int index;

	guard(mutex)(&m->context->map_lock);
	if (!drm_dev_enter(&m->context->device->drm, &index))
		return vmf_insert_pfn(vmf->vma, vmf->address, find_dead_pfn(m, &place));
	pfn = find_live_pfn(m, &place);
	ret = vmf_insert_pfn(vmf->vma, vmf->address, pfn);
	drm_dev_exit(index);
	return ret;
}

static void open_mapping(struct vm_area_struct *vma)
{
	struct mapping *m = vma->vm_private_data;

	kref_get(&m->ref);
}

static void free_mapping(struct kref *ref)
{
	kfree(container_of(ref, struct mapping, ref));
}

static void close_mapping(struct vm_area_struct *vma)
{
	struct mapping *m = vma->vm_private_data;

	kref_put(&m->ref, free_mapping);
}

static const struct vm_operations_struct vm_ops = {
	.open = open_mapping,
	.close = close_mapping,
	.fault = handle_mapping_fault,
};

static struct mapping *make_mapping(struct embeng_context *ctx, const struct embeng_queue *q)
{
	struct mapping *m = kmalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (m) {
		kref_init(&m->ref);
		m->context = ctx;
		m->timeline = q ? q->timeline : 0;
	}
	return m;
}

/**
 * embeng_mmap_revoke() - unmap a queue's pages from programs, so that they fault again
 * @q: queue that is no longer in its context
 */
void embeng_mmap_revoke(struct embeng_queue *q)
{
	struct address_space *space = q->context->device->drm.anon_inode->i_mapping;

	unmap_mapping_range(space, embeng_mmap_ring_offset(q), RING_STRIDE, 1);
	if (q->mapped)
		unmap_mapping_range(space, embeng_mmap_doorbell_offset(q), PAGE_SIZE, 1);
}

/**
 * embeng_mmap_hold_off() - take doorbells and registers away from all programs
 * @ed: device, after ed->resetting or ed->offline was set
 *
 * A fault that did not see that holds map_lock until its page is in, and is waited for.
 */
void embeng_mmap_hold_off(struct embeng_device *ed)
{
	struct address_space *space = ed->drm.anon_inode->i_mapping;
	struct embeng_context *ctx;

	scoped_guard(mutex, &ed->contexts_lock) {
		list_for_each_entry(ctx, &ed->contexts, link) {
			mutex_lock(&ctx->map_lock);
			mutex_unlock(&ctx->map_lock);
		}
	}
	unmap_mapping_range(space, DOORBELL_BASE, (u64)EMBENG_QUEUES_MAX * PAGE_SIZE, 1);
	embeng_mmap_show_registers(ed);
}

/**
 * embeng_mmap_show_registers() - have the next access to registers show the right page
 * @ed: device, after ed->resetting was cleared
 */
void embeng_mmap_show_registers(struct embeng_device *ed)
{
	unmap_mapping_range(ed->drm.anon_inode->i_mapping, REGISTERS_BASE,
			    PAGE_ALIGN(EMBENG_REGISTERS_SIZE), 1);
}

static int check_mapping_rights(const struct embeng_queue *q, const struct place *place,
				const struct vm_area_struct *vma)
{
	if (place->what == EMBENG_PLACE_REGISTERS)
		return capable(CAP_SYS_RAWIO) && !(vma->vm_flags & VM_WRITE) ? 0 : -EACCES;
	if (!q)
		return -ENOENT;
	if (place->what == EMBENG_PLACE_DOORBELL && !q->mapped)
		return -EACCES;
	return !q->mapped && vma->vm_flags & VM_WRITE ? -EACCES : 0;
}

static u64 find_mapping_limit(const struct embeng_queue *q, const struct place *place)
{
	if (place->what == EMBENG_PLACE_REGISTERS)
		return PAGE_ALIGN(EMBENG_REGISTERS_SIZE);
	return place->what == EMBENG_PLACE_DOORBELL ? PAGE_SIZE : PAGE_ALIGN(q->layout.size);
}

static int map_place(struct embeng_context *ctx, struct vm_area_struct *vma)
{
	struct place place = find_place((u64)vma->vm_pgoff << PAGE_SHIFT);
	struct embeng_queue *q;
	int ret;

	if (place.what == EMBENG_PLACE_NONE || place.offset || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	guard(mutex)(&ctx->map_lock);
	q = xa_load(&ctx->queues, place.queue);
	if (q && q->destroyed)
		q = NULL;
	ret = check_mapping_rights(q, &place, vma);
	if (ret)
		return ret;
	if (vma->vm_end - vma->vm_start > find_mapping_limit(q, &place))
		return -EINVAL;
	vma->vm_private_data = make_mapping(ctx, q);
	if (!vma->vm_private_data)
		return -ENOMEM;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTCOPY | VM_DONTDUMP);
	if (place.what == EMBENG_PLACE_REGISTERS || !q->mapped)
		vm_flags_clear(vma, VM_MAYWRITE);
	if (place.what != EMBENG_PLACE_RING) {
		vm_flags_set(vma, VM_IO);
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	}
	vma->vm_ops = &vm_ops;
	return 0;
}

/**
 * embeng_mmap() - mmap() on the device node
 * @file: open file, which keeps the context of the mapping
 * @vma: memory area to be mapped
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct drm_file *drm_file = file->private_data;
	struct embeng_context *ctx = to_embeng_context(drm_file);

	if (vma->vm_pgoff >= DRM_FILE_PAGE_OFFSET_START)
		return drm_gem_mmap(file, vma);
	if (embeng_gone(ctx->device) && !(READ_ONCE(ctx->device->resets.wedged) &&
					  vma->vm_pgoff >= REGISTERS_BASE >> PAGE_SHIFT))
		return -ENODEV;
	return map_place(ctx, vma);
}
