// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fence that a submit signals, as other drivers see it.
 *
 * A fence outlives queue, file and device, for as long as anybody holds it. It therefore has its
 * own memory and its own spinlock, and it keeps this module loaded. Memory and module are let go
 * of after a grace period of RCU, since the names of a fence may be read without a reference to
 * it; the exit of the module waits for that with rcu_barrier().
 *
 * embeng_fence_errno() is here too: it says which errno a fence carries for the status of a
 * command.
 */
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "driver.h"
#include "fence.h"

struct embeng_fence {
	struct dma_fence base;
	spinlock_t lock; /* the lock that @base uses */
	char timeline[24];
};

static struct embeng_fence *to_fence(struct dma_fence *base)
{
	return container_of(base, struct embeng_fence, base);
}

static const char *get_driver_name(struct dma_fence *base)
{
	return EMBENG_NAME;
}

static const char *get_timeline_name(struct dma_fence *base)
{
	return to_fence(base)->timeline;
}

/* Frees a fence after a grace period. The module's exit waits for these callbacks. */
static void free_fence_late(struct rcu_head *rcu)
{
	kfree(to_fence(container_of(rcu, struct dma_fence, rcu)));
	module_put(THIS_MODULE);
}

static void release_fence(struct dma_fence *base)
{
	call_rcu(&base->rcu, free_fence_late);
}

static const struct dma_fence_ops ops = {
	.get_driver_name = get_driver_name,
	.get_timeline_name = get_timeline_name,
	.release = release_fence,
};

/**
 * embeng_fence_new() - allocate a fence
 *
 * Return: a fence, to be given to embeng_fence_begin() or embeng_fence_end(), or NULL.
 */
struct embeng_fence *embeng_fence_new(void)
{
	struct embeng_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL_ACCOUNT);

	if (fence)
		__module_get(THIS_MODULE);
	return fence;
}

/**
 * embeng_fence_begin() - give a fence its place in the order of a queue
 * @fence: fence from embeng_fence_new()
 * @timeline: timeline of the queue
 * @seqno: sequence number on @timeline
 */
void embeng_fence_begin(struct embeng_fence *fence, u64 timeline, u64 seqno)
{
	spin_lock_init(&fence->lock);
	snprintf(fence->timeline, sizeof(fence->timeline), "queue-%llu", timeline);
	dma_fence_init(&fence->base, &ops, &fence->lock, timeline, seqno);
}

/**
 * embeng_fence_end() - signal a fence and drop its reference
 * @fence: fence; one that was never begun is only freed
 * @error: 0 or a negative errno
 */
void embeng_fence_end(struct embeng_fence *fence, int error)
{
	if (!fence->base.ops) {
		kfree(fence);
		module_put(THIS_MODULE);
		return;
	}
	if (error)
		dma_fence_set_error(&fence->base, error);
	dma_fence_signal(&fence->base);
	dma_fence_put(&fence->base);
}

/**
 * embeng_fence_get() - take a reference to the kernel's fence object
 * @fence: fence that embeng_fence_begin() was called for
 *
 * Return: the reference.
 */
struct dma_fence *embeng_fence_get(struct embeng_fence *fence)
{
	return dma_fence_get(&fence->base);
}

/* The table of statuses uses user space's name of this errno. */
#define ENOTSUP EOPNOTSUPP

static const int errors[] = {
#define ERROR_OF(name, value, class, error, code, text) \
	[value] = error,
	EMBENG_STATUS_TABLE(ERROR_OF)
#undef ERROR_OF
};

/**
 * embeng_fence_errno() - convert a command's status to the error of its fence
 * @status: status of a completion
 *
 * Return: 0 or a negative errno; -EIO for a status that this driver does not know.
 */
int embeng_fence_errno(u16 status)
{
	return status < ARRAY_SIZE(errors) ? -errors[status] : -EIO;
}
