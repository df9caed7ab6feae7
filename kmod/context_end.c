// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a context. The last close of its file hands it to a work, because its end takes as
 * long as the device takes to let go of its memory, and a program that was killed waits a moment
 * and no longer. A device that does not answer is reset by that work.
 *
 * The work keeps the DRM device and the context, and runs on a workqueue of the module's own, which
 * the exit of the module waits for. The driver that lets go of the device visits all contexts that
 * are on its list and frees their memory under ctx->lock; a context leaves the list when its memory
 * is free. Either may come first. contexts_lock is held for the list alone.
 */
#include <linux/cleanup.h>
#include <linux/workqueue.h>

#include "context.h"

/* How long a close waits, so that a program that goes on finds free what it had. */
#define CLOSE_PATIENCE HZ

static struct workqueue_struct *closing;

/**
 * embeng_context_free_scratch() - free the pages that mappings show once their memory is gone
 * @ctx: context
 */
void embeng_context_free_scratch(struct embeng_context *ctx)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ctx->scratch) && ctx->scratch[i]; i++)
		__free_page(ctx->scratch[i]);
}

static void free_context(struct kref *ref)
{
	struct embeng_context *ctx = container_of(ref, struct embeng_context, ref);

	xa_destroy(&ctx->regions);
	xa_destroy(&ctx->queues);
	xa_destroy(&ctx->foreign);
	embeng_context_free_scratch(ctx);
	embeng_user_put(ctx->device, ctx->user);
	kfree(ctx);
}

/**
 * embeng_context_put() - drop a reference to a context
 * @ctx: context; not under its lock
 */
void embeng_context_put(struct embeng_context *ctx)
{
	kref_put(&ctx->ref, free_context);
}

/* Frees the memory of a context, which the device must not reach any more. */
static void release_context(struct embeng_context *ctx, bool closing_file)
{
	guard(mutex)(&ctx->lock);
	embeng_queue_release_all(ctx, closing_file);
	embeng_region_release_all(ctx);
	embeng_context_free_table(ctx);
	ctx->released = true;
}

static struct embeng_context *get_unreleased_context(struct embeng_device *ed)
{
	struct embeng_context *ctx;

	guard(mutex)(&ed->contexts_lock);
	list_for_each_entry(ctx, &ed->contexts, link) {
		if (READ_ONCE(ctx->released))
			continue;
		kref_get(&ctx->ref);
		return ctx;
	}
	return NULL;
}

/**
 * embeng_context_release_all() - free the contexts' memory before the driver lets go
 * @ed: device, unplugged and silent
 */
void embeng_context_release_all(struct embeng_device *ed)
{
	struct embeng_context *ctx;

	while ((ctx = get_unreleased_context(ed))) {
		release_context(ctx, false);
		embeng_context_put(ctx);
	}
}

/*
 * Ends a context on the device, and all its queues with it. Whoever waited for its lock meanwhile,
 * as the watchdog does that has judged one of its queues, finds it ended: the device has nothing of
 * it any more that could be ended or reset.
 */
static void end_context(struct embeng_context *ctx)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_DESTROY,
		.context = ctx->number,
	};

	guard(mutex)(&ctx->lock);
	CLASS(embeng_use, use)(ctx->device);
	if (!ctx->made || !use.device)
		return;
	embeng_context_end_command(ctx, &cmd);
	ctx->ended = true;
	WRITE_ONCE(ctx->on_device, false);
}

static void end_closed_context(struct work_struct *work)
{
	struct embeng_context *ctx = container_of(work, struct embeng_context, end);
	struct embeng_device *ed = ctx->device;

	embeng_watch_exit(ctx);
	end_context(ctx);
	release_context(ctx, true);
	scoped_guard(mutex, &ed->contexts_lock)
		list_del(&ctx->link);
	if (ctx->made) {
		xa_erase(&ed->numbers, ctx->number);
		embeng_share_give(ctx, EMBENG_SHARE_CONTEXTS);
	}
	/* An interrupt, or a callback of another driver's fence, may still be using the context. */
	if (ctx->synced)
		synchronize_rcu();
	complete_all(&ctx->over);
	if (atomic_xchg(&ctx->pace, EMBENG_PACE_OVER) == EMBENG_PACE_LATE)
		atomic_dec(&ed->late);
	embeng_context_put(ctx);
	drm_dev_put(&ed->drm);
}

/**
 * embeng_context_end_init() - set up the end of a new context
 * @ctx: context
 */
void embeng_context_end_init(struct embeng_context *ctx)
{
	INIT_WORK(&ctx->end, end_closed_context);
	init_completion(&ctx->over);
}

/*
 * Waits a moment for the end of a context, but not if that of another one is late: a program that
 * is killed may have many files.
 */
static void wait_for_end(struct embeng_context *ctx)
{
	struct embeng_device *ed = ctx->device;

	if (atomic_read(&ed->late) > 0 ||
	    wait_for_completion_timeout(&ctx->over, CLOSE_PATIENCE))
		return;
	atomic_inc(&ed->late);
	/* It may have ended just now, and does not take itself off the count then. */
	if (atomic_cmpxchg(&ctx->pace, EMBENG_PACE_GOOD, EMBENG_PACE_LATE) != EMBENG_PACE_GOOD)
		atomic_dec(&ed->late);
}

/**
 * embeng_context_close() - end the context of a file whose last descriptor was closed
 * @drm: device, perhaps unplugged
 * @file: file that is being closed
 *
 * Its end goes on by itself if the device takes long.
 */
void embeng_context_close(struct drm_device *drm, struct drm_file *file)
{
	struct embeng_context *ctx = to_embeng_context(file);

	kref_get(&ctx->ref);
	drm_dev_get(drm);
	queue_work(closing, &ctx->end);
	wait_for_end(ctx);
	embeng_context_put(ctx);
}

/**
 * embeng_closing_init() - make the workqueue on which contexts end
 *
 * Return: 0 or -ENOMEM.
 */
int embeng_closing_init(void)
{
	/* Ending a context frees memory, hence MEM_RECLAIM. It stops while the system sleeps. */
	closing = alloc_workqueue("embeng-closing", WQ_UNBOUND | WQ_MEM_RECLAIM | WQ_FREEZABLE, 0);
	return closing ? 0 : -ENOMEM;
}

/**
 * embeng_closing_exit() - wait until all contexts have ended
 */
void embeng_closing_exit(void)
{
	destroy_workqueue(closing);
}
