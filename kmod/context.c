// SPDX-License-Identifier: GPL-2.0-only
/*
 * The context: what belongs to one open file of the device node. It holds the regions, the queues
 * and what the driver knows of training; the device has a counterpart once CONTEXT_CREATE was
 * called.
 *
 * It lives from open to the last close. While it is on the list of contexts, a holder of
 * contexts_mutex may use it, and close waits for that mutex before it frees anything. ctx->lock is
 * held while regions and queues are made and ended, and so over admin commands, which sleep.
 *
 * Everything that has the device let go of memory goes through embeng_context_end_command(): it
 * returns when the device has confirmed it, was reset, or has lost the bus, never earlier. A
 * context that a reset has lost stays until its file is closed; its calls fail with ESHUTDOWN.
 */
#include <linux/cleanup.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>

#include "context.h"

#define ENTRIES_DEFAULT 1024u

static ulong memory_limit_mib;
module_param(memory_limit_mib, ulong, 0600);
MODULE_PARM_DESC(memory_limit_mib, "memory limit in MiB of a context that asks for none (default: half of the machine's memory)");

static u64 choose_memory_limit(void)
{
	u64 mib = READ_ONCE(memory_limit_mib);

	return mib ? mib << 20 : (u64)totalram_pages() << PAGE_SHIFT >> 1;
}

static void free_scratch_pages(struct embeng_context *ctx)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ctx->scratch) && ctx->scratch[i]; i++)
		__free_page(ctx->scratch[i]);
}

static int make_scratch_pages(struct embeng_context *ctx)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ctx->scratch); i++) {
		ctx->scratch[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!ctx->scratch[i]) {
			free_scratch_pages(ctx);
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * embeng_context_open() - make the context of a file that is being opened
 * @drm: device
 * @file: file that is being opened
 *
 * Return: 0 or -ENOMEM.
 */
int embeng_context_open(struct drm_device *drm, struct drm_file *file)
{
	struct embeng_device *ed = to_embeng(drm);
	struct embeng_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return -ENOMEM;
	if (make_scratch_pages(ctx)) {
		kfree(ctx);
		return -ENOMEM;
	}
	ctx->device = ed;
	mutex_init(&ctx->lock);
	mutex_init(&ctx->map_lock);
	spin_lock_init(&ctx->ledger_lock);
	embeng_watch_init(ctx);
	init_waitqueue_head(&ctx->wait);
	xa_init_flags(&ctx->regions, XA_FLAGS_ALLOC);
	xa_init(&ctx->queues);
	file->driver_priv = ctx;
	guard(mutex)(&ed->contexts_mutex);
	guard(mutex)(&ed->contexts_lock);
	list_add_tail(&ctx->link, &ed->contexts);
	return 0;
}

/**
 * embeng_context_usable() - check that new work may begin in a context
 * @ctx: context; under its lock or reset_lock
 *
 * Return: 0, -ENODEV, -ESHUTDOWN after a loss, or -ENOENT when it was not made or has ended.
 */
int embeng_context_usable(const struct embeng_context *ctx)
{
	if (embeng_gone(ctx->device))
		return -ENODEV;
	if (READ_ONCE(ctx->lost))
		return -ESHUTDOWN;
	return ctx->made && !ctx->ended ? 0 : -ENOENT;
}

/**
 * embeng_context_charge() - count memory against the limit
 * @ctx: context, under its lock
 * @bytes: bytes to add
 *
 * Return: 0, -EOVERFLOW or -EDQUOT.
 */
int embeng_context_charge(struct embeng_context *ctx, u64 bytes)
{
	u64 sum;

	if (check_add_overflow(ctx->memory, bytes, &sum))
		return -EOVERFLOW;
	if (sum > ctx->memory_limit)
		return -EDQUOT;
	ctx->memory = sum;
	return 0;
}

/**
 * embeng_context_uncharge() - take memory off the count again
 * @ctx: context, under its lock
 * @bytes: bytes to subtract
 */
void embeng_context_uncharge(struct embeng_context *ctx, u64 bytes)
{
	ctx->memory -= bytes;
}

/**
 * embeng_context_event() - count an event and wake the sleepers of a context
 * @ctx: context; any context of execution
 */
void embeng_context_event(struct embeng_context *ctx)
{
	atomic64_inc(&ctx->events);
	wake_up_all(&ctx->wait);
}

/* True if the device reaches no memory: it is given up, or its bus has failed. */
static bool is_out_of_reach(const struct embeng_device *ed)
{
	return embeng_gone(ed) || READ_ONCE(ed->offline);
}

static const struct embeng_hang no_answer = { .cause = EMBENG_ACCEL_CAUSE_NO_ANSWER };

static int run_or_reset(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	struct embeng_device *ed = ctx->device;
	int ret = -ESHUTDOWN;
	u64 seen;

	scoped_guard(rwsem_read, &ed->reset_lock) {
		seen = ed->resets.sequence;
		if (!ctx->lost)
			ret = embeng_admin_run(ed, cmd);
	}
	if (ret == -ETIMEDOUT || (ret == -ENODEV && !is_out_of_reach(ed))) {
		embeng_reset(ed, EMBENG_ACCEL_RESET_ENGINE, seen, &no_answer);
		ret = embeng_gone(ed) ? -ENODEV : -ESHUTDOWN;
	}
	return ret;
}

/**
 * embeng_context_run_command() - run an admin command that makes something for this context
 * @ctx: context, under its lock
 * @cmd: admin command
 *
 * A device that does not answer is reset, and the context is lost. So is a device that seemed to be
 * gone: it may have taken the command, and may be back in a moment. Return: 0 or a negative errno.
 */
int embeng_context_run_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	int ret = run_or_reset(ctx, cmd);

	/* The driver knows of no such trouble, so that it is not the program's. */
	return ret == -ENOENT ? -EIO : ret;
}

/**
 * embeng_context_end_command() - make the device let go of memory
 * @ctx: context, under its lock
 * @cmd: admin command that completes once the device has let go
 *
 * When this returns, the device does not reach the memory any more: it completed the command, has
 * no such object, was reset, or has lost the bus.
 */
void embeng_context_end_command(struct embeng_context *ctx, struct embeng_admin_cmd *cmd)
{
	struct embeng_device *ed = ctx->device;
	u64 seen = READ_ONCE(ed->resets.sequence);
	int ret = run_or_reset(ctx, cmd);

	if (!ret || ret == -ENOENT || ret == -ESHUTDOWN || ret == -ENODEV)
		return;
	drm_err(&ed->drm, "the device refuses to let go (%d), it is reset\n", ret);
	embeng_reset(ed, EMBENG_ACCEL_RESET_ENGINE, seen, &no_answer);
}

static int make_region_table(struct embeng_context *ctx, u32 entries)
{
	struct device *dev = &ctx->device->pci->dev;

	ctx->generations = kvcalloc(entries, sizeof(*ctx->generations), EMBENG_GFP_WISH);
	if (!ctx->generations)
		return -ENOMEM;
	ctx->table = dma_alloc_coherent(dev, (size_t)entries * sizeof(*ctx->table),
					&ctx->table_dma, EMBENG_GFP_WISH);
	if (!ctx->table)
		return -ENOMEM;
	ctx->entries = entries;
	return 0;
}

static void free_region_table(struct embeng_context *ctx)
{
	struct device *dev = &ctx->device->pci->dev;

	if (ctx->table)
		dma_free_coherent(dev, (size_t)ctx->entries * sizeof(*ctx->table), ctx->table,
				  ctx->table_dma);
	ctx->table = NULL;
	kvfree(ctx->generations);
	ctx->generations = NULL;
}

static int announce_context(struct embeng_context *ctx)
{
	struct embeng_admin_cmd cmd = {
		.opcode = EMBENG_ADMIN_CONTEXT_CREATE,
		.context = ctx->number,
		.count = ctx->entries,
		.address = ctx->table_dma,
	};
	int ret;

	/* Set before the device knows of the context, so that a reset in between finds it. */
	WRITE_ONCE(ctx->on_device, true);
	ret = embeng_context_run_command(ctx, &cmd);
	if (ret)
		WRITE_ONCE(ctx->on_device, false);
	return ret;
}

static int number_context(struct embeng_context *ctx)
{
	struct embeng_device *ed = ctx->device;
	int ret = xa_alloc(&ed->numbers, &ctx->number, ctx, XA_LIMIT(0, ed->caps.contexts - 1),
			   GFP_KERNEL);

	return ret == -EBUSY ? -ENOSPC : ret;
}

static int make_context(struct embeng_context *ctx, u32 entries)
{
	int ret = number_context(ctx);

	if (ret)
		return ret;
	ret = make_region_table(ctx, entries);
	if (!ret)
		ret = announce_context(ctx);
	if (ret) {
		free_region_table(ctx);
		xa_erase(&ctx->device->numbers, ctx->number);
	}
	return ret;
}

/**
 * embeng_context_create_ioctl() - DRM_IOCTL_EMBENG_CONTEXT_CREATE
 * @drm: device
 * @data: &struct embeng_accel_context_create
 * @file: open file that gets the context
 *
 * Return: 0 or a negative errno that embeng_accel.h documents.
 */
int embeng_context_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct embeng_accel_context_create *arg = data;
	struct embeng_context *ctx = to_embeng_context(file);
	u32 most = ctx->device->caps.regions;
	int ret;

	CLASS(embeng_use, use)(ctx->device);
	if (!use.device)
		return -ENODEV;
	if (arg->flags || arg->regions > most)
		return -EINVAL;
	guard(mutex)(&ctx->lock);
	ret = embeng_context_usable(ctx);
	if (ret != -ENOENT)
		return ret ?: -EBUSY;
	ret = make_context(ctx, arg->regions ?: min(ENTRIES_DEFAULT, most));
	if (ret)
		return ret;
	ctx->memory_limit = arg->memory_limit ?: choose_memory_limit();
	ctx->made = true;
	embeng_watchdog_start(ctx->device);
	return 0;
}

/* Frees the memory of a context, which the device must not reach any more. */
static void release_context(struct embeng_context *ctx, bool closing)
{
	embeng_queue_release_all(ctx, closing);
	embeng_region_release_all(ctx);
	free_region_table(ctx);
}

/**
 * embeng_context_release_all() - free the contexts' memory before the driver lets go
 * @ed: device, unplugged and silent
 */
void embeng_context_release_all(struct embeng_device *ed)
{
	struct embeng_context *ctx;

	guard(mutex)(&ed->contexts_mutex);
	list_for_each_entry(ctx, &ed->contexts, link) {
		guard(mutex)(&ctx->lock);
		release_context(ctx, false);
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
	int index;

	guard(mutex)(&ctx->lock);
	if (!ctx->made || !embeng_dev_enter(ctx->device, &index))
		return;
	embeng_context_end_command(ctx, &cmd);
	ctx->ended = true;
	WRITE_ONCE(ctx->on_device, false);
	embeng_dev_exit(ctx->device, index);
}

/**
 * embeng_context_close() - free the context of a file whose last descriptor was closed
 * @drm: device, perhaps unplugged
 * @file: file that is being closed
 */
void embeng_context_close(struct drm_device *drm, struct drm_file *file)
{
	struct embeng_context *ctx = to_embeng_context(file);
	struct embeng_device *ed = ctx->device;

	embeng_watch_exit(ctx);
	end_context(ctx);
	/* A driver that lets go of the device waits for this mutex, and so for this release. */
	scoped_guard(mutex, &ed->contexts_mutex) {
		scoped_guard(mutex, &ed->contexts_lock)
			list_del(&ctx->link);
		guard(mutex)(&ctx->lock);
		release_context(ctx, true);
	}
	if (ctx->made)
		xa_erase(&ed->numbers, ctx->number);
	xa_destroy(&ctx->regions);
	xa_destroy(&ctx->queues);
	/* An interrupt, or a callback of another driver's fence, may still be using the context. */
	if (ctx->synced)
		synchronize_rcu();
	free_scratch_pages(ctx);
	kfree(ctx);
}
