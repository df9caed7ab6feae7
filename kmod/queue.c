// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: made, found, ended and buried. A queue is a pair of rings in DMA memory that the device
 * and the program share, with a doorbell page in BAR 2.
 *
 * The context holds a reference from creation on, and so does each call that uses the queue
 * (embeng_queue_get()). The ring memory goes with the last one, or at unplug; the device does not
 * reach it any more by then, because it answered QUEUE_DESTROY or was reset or silenced. A queue
 * that is lost in a reset or an unplug is buried: its ring is marked dead and copied to the
 * `grave`, which mappings show when the ring memory is gone.
 *
 * ctx->lock is held while a queue is made and ended; map_lock guards the list that faults and
 * other calls look queues up in; `destroyed` keeps a late submitter from ringing a doorbell that
 * may belong to another queue by then. If a program is killed before the device has confirmed
 * that it made or ended a queue, the queue stays on the list, destroyed, until the context ends.
 */
#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>
#include <linux/vmalloc.h>

#include "context.h"

static bool mapped_queues = true;
module_param(mapped_queues, bool, 0400);
MODULE_PARM_DESC(mapped_queues, "allow programs to write rings and doorbells themselves (default: Y)");

/**
 * embeng_queue_may_map() - check whether mapped queues are allowed
 * @ed: device
 */
bool embeng_queue_may_map(const struct embeng_device *ed)
{
	return mapped_queues && ed->caps.features & EMBENG_CAP_MAPPED_QUEUES;
}

static void free_queue_ring(struct embeng_queue *q)
{
	if (q->pages)
		dma_free_pages(&q->context->device->pci->dev, PAGE_ALIGN(q->layout.size), q->pages,
			       q->dma, DMA_BIDIRECTIONAL);
	q->pages = NULL;
	q->ring = NULL;
}

static void free_queue(struct kref *ref)
{
	struct embeng_queue *q = container_of(ref, struct embeng_queue, ref);

	free_queue_ring(q);
	vfree(q->grave);
	bitmap_free(q->answered);
	mutex_destroy(&q->lock);
	kfree(q);
}

/**
 * embeng_queue_get() - find a queue of this context
 * @ctx: context
 * @number: number of the queue
 *
 * Return: the queue, to be given to embeng_queue_put(), or NULL.
 */
struct embeng_queue *embeng_queue_get(struct embeng_context *ctx, u32 number)
{
	struct embeng_queue *q;

	guard(mutex)(&ctx->map_lock);
	q = xa_load(&ctx->queues, number);
	if (!q || q->destroyed)
		return NULL;
	kref_get(&q->ref);
	return q;
}

/**
 * embeng_queue_put() - drop a reference to a queue
 * @q: from embeng_queue_get()
 */
void embeng_queue_put(struct embeng_queue *q)
{
	kref_put(&q->ref, free_queue);
}

static int allocate_queue_ring(struct embeng_queue *q)
{
	struct device *dev = &q->context->device->pci->dev;

	q->answered = bitmap_alloc(q->layout.sq_entries, GFP_KERNEL_ACCOUNT);
	if (!q->answered)
		return -ENOMEM;
	q->grave = __vmalloc(PAGE_ALIGN(q->layout.size), EMBENG_GFP_WISH | __GFP_ZERO);
	if (!q->grave)
		return -ENOMEM;
	q->pages = dma_alloc_pages(dev, PAGE_ALIGN(q->layout.size), &q->dma, DMA_BIDIRECTIONAL,
				   GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!q->pages)
		return -ENOMEM;
	q->ring = page_address(q->pages);
	return 0;
}

static int number_queue(struct embeng_queue *q)
{
	struct embeng_device *ed = q->context->device;
	int ret = embeng_share_take(q->context, EMBENG_SHARE_QUEUES);

	if (ret)
		return ret;
	ret = xa_alloc(&ed->queues, &q->number, q, XA_LIMIT(1, ed->caps.queues - 1),
		       GFP_KERNEL_ACCOUNT);
	q->numbered = !ret;
	if (ret)
		embeng_share_give(q->context, EMBENG_SHARE_QUEUES);
	return ret == -EBUSY ? -ENOSPC : ret;
}

static void free_queue_number(struct embeng_queue *q)
{
	if (!q->numbered)
		return;
	xa_erase(&q->context->device->queues, q->number);
	embeng_share_give(q->context, EMBENG_SHARE_QUEUES);
	q->numbered = false;
}

/* The first vector serves the admin queue, and every queue where there is no other vector. */
static struct embeng_vector *choose_vector(struct embeng_device *ed, u32 number)
{
	u32 count = min(ed->vector_count, ed->caps.vectors);

	return &ed->vectors[count > 1 ? 1 + (number - 1) % (count - 1) : 0];
}

static int announce_queue(struct embeng_queue *q, u8 flags, u32 sq_index, u32 cq_index)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_QUEUE_CREATE,
		.kind = q->kind,
		.priority = q->priority,
		.flags = flags,
		.replica = q->replica,
		.context = q->context->number,
		.queue = q->number,
		.address = q->dma,
		.sq_entries = q->layout.sq_entries,
		.cq_entries = q->layout.cq_entries,
		.vector = q->vector->index,
		.sq_index = sq_index,
		.cq_index = cq_index,
	};

	memset(&q->watch, 0, sizeof(q->watch));
	return embeng_context_run_command(q->context, &cmd);
}

/**
 * embeng_queue_go_on() - restart a queue that was ended on the device
 * @q: queue, under ctx->lock
 * @sq_index: the first command that it takes
 * @cq_index: index at which the device posts the first completion
 *
 * Return: 0 or a negative errno.
 */
int embeng_queue_go_on(struct embeng_queue *q, u32 sq_index, u32 cq_index)
{
	q->sq_begin = sq_index;
	q->cq_begin = cq_index;
	return announce_queue(q, EMBENG_ADMIN_QUEUE_AT, sq_index, cq_index);
}

/* Not during a reset, behind which the context is lost. */
static void clear_doorbell(struct embeng_queue *q)
{
	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		if (READ_ONCE(q->context->device->resetting))
			return;
		embeng_doorbell_write(q->doorbell, arm, 0);
		embeng_doorbell_write(q->doorbell, armed, 0);
		embeng_doorbell_write(q->doorbell, sq_tail, q->sq_begin);
		embeng_doorbell_write(q->doorbell, cq_head, q->cq_begin);
	}
}

/* Before the device knows of the queue. */
static int prepare_queue(struct embeng_queue *q)
{
	struct embeng_device *ed = q->context->device;
	int ret = number_queue(q);

	if (ret)
		return ret;
	q->vector = choose_vector(ed, q->number);
	q->doorbell = embeng_doorbell(ed, q->number);
	clear_doorbell(q);
	embeng_queue_irq_init(q);
	return 0;
}

/* The program chooses where both rings begin, and the device finds it in the doorbell. */
static void choose_first_index(struct embeng_queue *q, u32 first)
{
	q->sq_begin = first;
	q->last_tail = first;
	q->cq_begin = first;
	q->last_head = first;
}

/* Once the device has published the indices in the header, so that nobody counts from 0 to them. */
static void take_first_index(struct embeng_queue *q)
{
	scoped_guard(spinlock_irqsave, &q->vector->lock) {
		q->sq_tail = q->sq_begin;
		q->given = q->sq_begin;
		q->cq_head = q->cq_begin;
		q->walked = q->cq_begin;
		q->noted_tail = q->cq_begin;
	}
}

static struct embeng_queue *allocate_queue(struct embeng_context *ctx,
					   const struct embeng_accel_queue_create *arg)
{
	struct embeng_queue *q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);

	if (!q)
		return NULL;
	kref_init(&q->ref);
	mutex_init(&q->lock);
	INIT_LIST_HEAD(&q->jobs);
	q->timeline = dma_fence_context_alloc(1);
	INIT_LIST_HEAD(&q->vector_link);
	q->destroyed = true; /* until it is made */
	q->context = ctx;
	q->kind = arg->kind;
	q->priority = arg->priority;
	q->replica = arg->replica;
	q->mapped = arg->flags & EMBENG_ACCEL_QUEUE_MAPPED;
	choose_first_index(q, arg->first);
	q->coalesce = arg->coalesce_count ?: 1;
	q->coalesce_us = arg->coalesce_us;
	q->layout = embeng_ring_layout(arg->sq_entries, arg->cq_entries,
				       EMBENG_RING_REPORTS | EMBENG_RING_HEALTH |
				       EMBENG_RING_COUNTS |
				       (q->mapped ? EMBENG_RING_MAPPED : 0));
	return q;
}

static int publish_queue(struct embeng_queue *q)
{
	struct embeng_context *ctx = q->context;

	guard(mutex)(&ctx->map_lock);
	return xa_err(xa_store(&ctx->queues, q->number, q, GFP_KERNEL_ACCOUNT));
}

/* Takes a queue off the list, after which nobody finds it. */
static void unpublish_queue(struct embeng_queue *q)
{
	guard(mutex)(&q->context->map_lock);
	xa_erase(&q->context->queues, q->number);
}

/**
 * embeng_queue_end() - make the device let go of the rings
 * @q: queue, under ctx->lock
 *
 * The device completes the commands that it had taken: the one at fault as HUNG, all others as
 * ABORTED.
 *
 * Return: 0 or -EINTR, as embeng_context_end_command().
 */
int embeng_queue_end(struct embeng_queue *q)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_QUEUE_DESTROY,
		.queue = q->number,
	};

	if (q->at_fault && q->fault_index == READ_ONCE(embeng_queue_header(q)->done)) {
		cmd.flags = EMBENG_ADMIN_QUEUE_HUNG;
		cmd.cq_index = min_t(u64, div_u64(q->fault_ns, NSEC_PER_MSEC), U32_MAX);
	}
	return embeng_context_end_command(q->context, &cmd);
}

/* Takes back what make_queue() did, or what was left of a queue that the device has let go of. */
static void unmake_queue(struct embeng_queue *q)
{
	if (!list_empty(&q->vector_link))
		embeng_queue_irq_exit(q);
	unpublish_queue(q);
	free_queue_number(q);
	embeng_context_uncharge(q->context, q->layout.size);
}

static void set_queue_destroyed(struct embeng_queue *q, bool destroyed)
{
	guard(mutex)(&q->lock);
	guard(mutex)(&q->context->map_lock);
	WRITE_ONCE(q->destroyed, destroyed);
}

/* Return: 0; -EINTR if the device may yet make the queue, which stays as one that is destroyed. */
static int make_queue(struct embeng_queue *q)
{
	int ret = embeng_context_charge(q->context, q->layout.size);

	if (ret)
		return ret;
	ret = allocate_queue_ring(q);
	if (!ret)
		ret = prepare_queue(q);
	if (!ret)
		ret = publish_queue(q);
	if (!ret)
		ret = announce_queue(q, 0, 0, 0);
	if (!ret)
		take_first_index(q);
	else if (ret != -EINTR)
		unmake_queue(q);
	return ret;
}

/**
 * embeng_queue_create_ioctl() - DRM_IOCTL_EMBENG_QUEUE_CREATE
 * @drm: device
 * @data: &struct embeng_accel_queue_create
 * @file: open file with the context
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_queue_create *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);
	struct embeng_queue *q;
	int ret = embeng_queue_check(ctx->device, arg);

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	if (ret)
		return ret;
	CLASS(embeng_lock, locked)(ctx);
	if (!locked)
		return -EINTR;
	ret = embeng_queue_check_context(ctx, arg);
	if (ret)
		return ret;
	q = allocate_queue(ctx, arg);
	if (!q)
		return -ENOMEM;
	ret = make_queue(q);
	if (ret == -EINTR)
		return ret;
	if (ret) {
		embeng_queue_put(q);
		return ret;
	}
	ctx->queue_count++;
	embeng_queue_trains(ctx, arg);
	set_queue_destroyed(q, false);
	arg->queue = q->number;
	arg->layout = q->layout;
	arg->ring = embeng_mmap_ring_offset(q);
	arg->doorbell = embeng_mmap_doorbell_offset(q);
	return 0;
}

/*
 * Takes a queue away from its program. New faults on its mappings show the scratch page, and calls
 * that found it earlier do not ring: another queue may get the doorbell. Under ctx->lock.
 */
static struct embeng_queue *withdraw_queue(struct embeng_context *ctx, u32 number)
{
	struct embeng_queue *q = xa_load(&ctx->queues, number);

	if (!q || q->destroyed)
		return NULL;
	set_queue_destroyed(q, true);
	return q;
}

/**
 * embeng_queue_destroy_ioctl() - DRM_IOCTL_EMBENG_QUEUE_DESTROY
 * @drm: device
 * @data: &struct embeng_accel_queue_destroy
 * @file: open file with the context
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	const struct embeng_accel_queue_destroy *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);
	struct embeng_queue *q;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	if (arg->reserved)
		return -EINVAL;
	CLASS(embeng_lock, locked)(ctx);
	if (!locked)
		return -EINTR;
	q = withdraw_queue(ctx, arg->queue);
	if (!q)
		return -ENOENT;
	/* After this no program can ring the doorbell, or read what the device still writes. */
	embeng_mmap_revoke(q);
	ret = embeng_queue_end(q);
	embeng_queue_irq_exit(q);
	if (ret) {
		embeng_ring_end(q, -ECANCELED);
		return ret;
	}
	embeng_usage_end(q);
	if (!q->mapped)
		embeng_ring_void(q);
	embeng_context_event(ctx);
	unmake_queue(q);
	ctx->queue_count--;
	embeng_queue_put(q);
	return 0;
}

/**
 * embeng_queue_bury() - mark a lost queue's ring dead and copy it to the grave
 * @q: queue, whose rings the device does not reach; it stays until the file is closed
 * @error: error for its fences
 */
void embeng_queue_bury(struct embeng_queue *q, int error)
{
	struct embeng_ring_header *header;

	embeng_ring_stop(q);
	embeng_ring_end(q, error);
	if (!q->ring)
		return;
	WRITE_ONCE(embeng_queue_header(q)->dead, 1);
	memcpy(q->grave, q->ring, q->layout.size);
	header = q->grave + q->layout.header;
	header->dead = 1;
}

/**
 * embeng_queue_release_all() - free the rings of queues that the device does not reach any more
 * @ctx: context, under its lock
 * @closing: the file is being closed, so nobody has a queue mapped, and the queues are freed too;
 *	otherwise mappings go on to show the grave
 */
void embeng_queue_release_all(struct embeng_context *ctx, bool closing)
{
	struct embeng_queue *q;
	unsigned long number;

	xa_for_each(&ctx->queues, number, q) {
		if (!list_empty(&q->vector_link))
			embeng_queue_irq_exit(q);
		free_queue_number(q);
		if (!closing) {
			free_queue_ring(q);
			continue;
		}
		set_queue_destroyed(q, true);
		embeng_ring_end(q, -ECANCELED);
		unmake_queue(q);
		embeng_queue_put(q);
	}
}
